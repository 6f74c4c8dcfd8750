"""Training in stages on a toy: it learns, it goes on where it was broken off, and prototypes are what they say."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from fanlight_models.prototypes import vit
from fanlight_models.prototypes.projection import project
from fanlight_models.prototypes.protovit import ProtoViT
from fanlight_models.prototypes.training import Epoch, Plan, Training

SHAPE = vit.Shape(size=32, patch=4, width=32, depth=2, heads=2)
PLAN = Plan(
    epochs={"backbone": 5, "warm": 1, "joint": 3, "slots": 1, "last": 1},
    backbone_rate=2e-3,
    joint_rate=5e-4,
    prototype_rate=1e-2,
    slot_travel=0.3,
)


def toy(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Noise with a square of 8 px somewhere, whose colour is the class."""
    draw = np.random.default_rng(seed)
    x = draw.normal(0, 0.3, (count, 3, 32, 32)).astype(np.float32)
    classes = draw.integers(0, 3, count)
    for i, c in enumerate(classes):
        top, left = draw.integers(0, 25, 2)
        x[i, :, top : top + 8, left : left + 8] -= 1
        x[i, c, top : top + 8, left : left + 8] += 3
    return torch.from_numpy(x), torch.from_numpy(classes)


class Toy:
    def __init__(self, count: int = 192):
        self.x, self.classes = toy(count, 0)
        self.others = toy(96, 1)

    @property
    def steps(self) -> int:
        return len(self.x) // 32

    def augmented(self, epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        order = torch.randperm(len(self.x), generator=torch.Generator().manual_seed(epoch))
        for some in torch.split(order, 32):
            yield self.x[some], self.classes[some]

    def plain(self) -> Iterator[tuple[Tensor, Tensor]]:
        for at in range(0, len(self.x), 50):
            yield self.x[at : at + 50], self.classes[at : at + 50]

    def validation(self) -> Iterator[tuple[Tensor, Tensor]]:
        yield self.others


def model() -> ProtoViT:
    torch.manual_seed(0)
    return ProtoViT(SHAPE, 3, per_class=2)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Training:
    made = Training(model(), Toy(), PLAN, tmp_path_factory.mktemp("toy") / "toy.safetensors")
    assert made.run()
    return made


def test_it_learns_and_every_stage_is_told(trained: Training) -> None:
    assert [e.stage for e in trained.history] == ["backbone"] * 5 + ["warm"] + ["joint"] * 3 + [
        "slots",
        "projection",
        "last",
    ]
    assert trained.history[-1].accuracy > 0.8 > 1 / 3
    cluster = [e.losses["cluster"] for e in trained.history if e.stage == "joint"]
    assert cluster[-1] > cluster[0]


def test_a_training_that_is_broken_off_goes_on_to_the_same_weights(trained: Training, tmp_path: Path) -> None:
    told: list[Epoch] = []
    rounds = 0
    while True:
        again = Training(model(), Toy(), PLAN, tmp_path / "toy.safetensors", told.append)
        rounds += 1
        if again.run(stop=lambda: len(told) % 4 == 0):
            break
    assert rounds > 2
    assert [(e.stage, e.number) for e in told] == [(e.stage, e.number) for e in trained.history]
    for a, b in zip(again.model.state_dict().values(), trained.model.state_dict().values(), strict=True):
        assert torch.equal(a, b)
    assert again.sources == trained.sources and again.history == trained.history


def test_every_active_part_is_a_token_of_its_source_bit_by_bit(trained: Training) -> None:
    net, data = trained.model.eval(), Toy()
    head = net.head
    assert len(trained.sources) == 6
    for j, source in enumerate(trained.sources):
        assert source.image is not None and int(data.classes[source.image]) == int(head.own[j])
        start = source.image // 50 * 50  # projected in these batches; others differ in the last bits
        with torch.inference_mode():
            z = net.features.tokens(data.x[start : start + 50])[source.image - start]
        for k, token in enumerate(source.token):
            vector = head.prototype_vectors[j, :, k]
            if token is None:
                assert not vector.any() and head.gate[j, k] == 0
            else:
                assert torch.equal(vector, z[token]) and head.gate[j, k] == 1
        assert source.movement is not None and 0 <= source.movement <= 2
        assert source.self_activation <= 4 + 1e-5


def test_explaining_changes_nothing(trained: Training) -> None:
    def weights() -> str:
        return hashlib.sha256(b"".join(v.numpy().tobytes() for v in trained.model.state_dict().values())).hexdigest()

    before = weights()
    with torch.inference_mode():
        trained.model(Toy().others[0])
    assert weights() == before


def test_a_class_without_pictures_has_no_source_and_no_activation() -> None:
    net = model()
    data = Toy()
    only = data.classes != 2

    def batches() -> Iterator[tuple[Tensor, Tensor]]:
        yield data.x[only], data.classes[only]

    found = project(net, batches)
    assert [s.image is None for s in found] == [False] * 4 + [True] * 2
    assert found[5].movement is None and found[5].token == [None] * 4
    with torch.inference_mode():
        assert not net(data.x[:2]).activation[:, 4:].any()


def test_prototypes_that_land_on_the_same_tokens_say_so() -> None:
    net = model()
    with torch.no_grad():
        net.head.prototype_vectors[1] = net.head.prototype_vectors[0]
    found = project(net, Toy().plain)
    assert found[1].duplicate_of == 0 and found[0].duplicate_of is None


@pytest.mark.parametrize("variant", ["paper", "repo"])
def test_a_gate_travels_as_far_as_it_is_allowed_whatever_the_number_of_steps(tmp_path: Path, variant: str) -> None:
    plan = Plan(variant=variant, epochs={"slots": 2}, slot_travel=0.3)  # type: ignore[arg-type]
    for count in (96, 192):
        net = model()
        made = Training(net, Toy(count), plan, tmp_path / f"{variant}{count}.safetensors")
        travelled: list[float] = []
        made.tell = lambda e, net=net, travelled=travelled: travelled.append(
            float((net.head.patch_select.detach() - 0.1).abs().max())
        )  # type: ignore[misc]
        made.run()
        assert 0.05 < travelled[1] <= 0.3 + 1e-6
