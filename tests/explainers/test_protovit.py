"""ProtoViT as a method: points that are the logit, edits that are exact, and what the specification works out by hand."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from fanlight.adapters import bundle as bundles
from fanlight.artifact import Artifact
from fanlight.drawing import renderer
from fanlight.errors import ComputeFailed, InvalidField
from fanlight.explainers import changes, matches
from fanlight.explainers.base import Target
from fanlight.explainers.prototypes.protovit import ProtoViT, _adds_up
from support.explaining import Context, explained, item
from support.prototypes import small, write


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return bundles.load(write(tmp_path_factory.mktemp("protovit") / "small"))


@pytest.fixture(scope="module")
def found(model: Any) -> Artifact:
    return explained(ProtoViT, model, item(model))[0].check()


def digest(model: Any) -> str:
    return hashlib.sha256(b"".join(v.numpy().tobytes() for _, v in sorted(model.net.state_dict().items()))).hexdigest()


def edited(model: Any, artifact: Artifact, *edits: dict[str, Any]) -> tuple[Artifact, list[dict[str, Any]]]:
    canonical = ProtoViT.canonical(edits, artifact.meta)
    made = ProtoViT().edit(model, [artifact], canonical, ProtoViT.Params())
    return made.artifacts[0].check(), made.prediction


def test_it_is_an_image_classifier_too(model: Any) -> None:
    assert model.task == "prototype-classifier"
    assert {"gradients", "spatial-features", "attention", "embedding"} <= model.capabilities


def test_points_of_all_parts_add_up_to_every_logit(model: Any, found: Artifact) -> None:
    one = item(model)
    slot = found.arrays["slot"].astype(np.float64)
    shares = 4 / slot.sum(1, keepdims=True) * slot * found.arrays["val"]
    points = model.weight.numpy()[:, :, None] * shares  # (C, m, K)
    np.testing.assert_allclose(points.sum((1, 2)), one.logits.numpy(), rtol=0, atol=1e-5)
    detail = renderer("prototypes").detail(found)
    rows = sum(p["points"] for r in detail["rows"] for p in r["parts"]) + detail["rest"]["points"]
    assert rows == pytest.approx(float(one.logits[one.target.index]), abs=1e-5)
    assert detail["positive"] + detail["negative"] == pytest.approx(detail["total"], abs=1e-9)


def test_what_is_stored_is_what_the_network_found(model: Any, found: Artifact) -> None:
    with torch.inference_mode():
        whole = model.prototypes(item(model).x[None])
    np.testing.assert_array_equal(found.arrays["idx"], whole.token[0])
    np.testing.assert_array_equal(found.arrays["order"], whole.order[0])
    np.testing.assert_allclose(found.arrays["val"], whole.similarity[0], atol=1e-6)


def test_points_that_are_not_the_logits_are_refused(model: Any, found: Artifact) -> None:
    match = matches.Match.stored(found)
    logits = item(model).logits.numpy()
    _adds_up(model, match, logits)
    with pytest.raises(ComputeFailed, match="do not add up"):
        _adds_up(model, match, logits + np.float32([0.01, 0, 0]))


def test_muting_takes_its_points_away_and_nothing_else(model: Any, found: Artifact) -> None:
    before = item(model).logits.numpy()
    made, prediction = edited(model, found, {"mute_prototype": 4})
    after = {p["index"]: p["logit"] for p in prediction}
    for c in range(3):
        away = float(model.weight[c, 4]) * float(found.arrays["activation"][4])
        assert after[c] == pytest.approx(before[c] - away, abs=1e-5)
    assert made.arrays["activation"][4] == 0 and made.meta["edits"] == [{"mute_prototype": 4}]


def test_a_part_that_fits_badly_raises_its_prototype_when_it_goes_and_this_is_said(model: Any, found: Artifact) -> None:
    val, slot = found.arrays["val"], found.arrays["slot"]
    j = 0
    k = int(np.where(slot[j] == 1, val[j], 9).argmin())
    made, _ = edited(model, found, {"gate_part": [j, k]})
    left = [i for i in range(4) if slot[j, i] and i != k]
    assert made.arrays["activation"][j] == pytest.approx(4 * val[j, left].mean(), abs=1e-6)
    raised = renderer("prototypes").detail(made)["raised"]
    assert [r["prototype"] for r in raised] == [j] and raised[0]["after"] > raised[0]["before"]
    np.testing.assert_array_equal(made.arrays["idx"], found.arrays["idx"])


def test_removing_a_part_looks_again_as_a_network_without_it_would(model: Any, found: Artifact) -> None:
    from fanlight_models.prototypes import matching

    made, _ = edited(model, found, {"remove_part": [0, int(found.arrays["order"][0].argmin())]})
    gone = int(found.arrays["order"][0].argmin())
    left = [k for k in range(4) if k != gone]
    tokens, parts = torch.from_numpy(np.array(found.arrays["tokens"])), model.parts[0, left]
    walk = matching.walk(parts @ tokens.T, model.near)
    np.testing.assert_array_equal(made.arrays["idx"][0, left], walk.token)
    assert made.arrays["idx"][0, gone] == 65535 and made.arrays["val"][0, gone] == 0
    np.testing.assert_array_equal(made.arrays["idx"][1:], found.arrays["idx"][1:])


def test_excluding_a_region_is_what_the_network_says_without_those_places(model: Any, found: Artifact) -> None:
    made, prediction = edited(model, found, {"exclude_region": [1, 0, 9.5, 8]})
    free = torch.ones(8, 8, dtype=torch.bool)
    free[:2, :3] = False
    with torch.inference_mode():
        whole = model.prototypes(item(model).x[None], free=free.reshape(1, -1))
    np.testing.assert_array_equal(made.arrays["idx"], whole.token[0])
    np.testing.assert_allclose(made.arrays["activation"], whole.activation[0], atol=1e-6)
    for p in prediction:
        assert p["logit"] == pytest.approx(float(whole.logits[0, p["index"]]), abs=1e-5)


def test_edits_are_reversible_and_start_from_what_was_found(model: Any, found: Artifact) -> None:
    wild = [{"exclude_region": [0, 0, 8, 8]}, {"remove_part": [2, 1]}, {"mute_prototype": 1}]
    changed, _ = edited(model, found, *wild)
    assert changed.to_bytes() != found.to_bytes()
    back, _ = edited(model, changed)  # from the edited artifact, with no edits left
    for name in matches.Match._fields:
        np.testing.assert_array_equal(back.arrays[name], found.arrays[name])
    again, _ = edited(model, back, *reversed(wild))
    assert again.to_bytes() == changed.to_bytes()


def test_why_not_is_the_smallest_set_that_flips(model: Any, found: Artifact) -> None:
    target = found.meta["target"]["class"]
    for other in {0, 1, 2} - {target}:
        made, _ = edited(model, found, {"why_not": other})
        said = renderer("prototypes").detail(made)["contrast"]
        difference = (model.weight[target] - model.weight[other]).double().numpy() * found.arrays["activation"]
        assert said["margin"] == pytest.approx(difference.sum(), abs=1e-5)
        assert {r["class"] for r in said["rows"]} == {other}
        flips = said["mute"]
        if flips is None:
            assert difference[difference > 0].sum() <= difference.sum()
            continue
        _, now = edited(model, found, *({"mute_prototype": j} for j in flips))
        logits = {p["index"]: p["logit"] for p in now}
        assert logits[other] > logits[target]
        assert logits[target] - logits[other] == pytest.approx(said["after"], abs=1e-5)
        most = np.sort(difference)[::-1][: len(flips) - 1].sum() if len(flips) > 1 else 0.0
        assert difference.sum() - most >= 0, "no smaller set flips it: even the largest ones do not"


def test_the_known_answer_of_four_prototypes(model: Any) -> None:
    """L1 of the specification: W = ((1, 1, -.5, -.5), (-.5, -.5, 1, 1)), a = (3.6, 2, 1.2, 3)."""
    weight = torch.tensor([[1.0, 1, -0.5, -0.5], [-0.5, -0.5, 1, 1]])
    two = SimpleNamespace(weight=weight, own=torch.tensor([0, 0, 1, 1]), classes=("A", "B"))
    a = np.float32([3.6, 2, 1.2, 3])
    match = matches.Match(a, *(np.zeros((4, 4)) for _ in range(4)))
    now = matches.logits(two, match)
    np.testing.assert_allclose(now, [3.5, 1.4], atol=1e-6)
    said = matches.flip(two, match, now, 0, 1)
    assert said["mute"] == [0] and said["after"] == pytest.approx(-3.3) and said["margin"] == pytest.approx(2.1)
    muted = match._replace(activation=np.float32([3.6, 2, 1.2, 0]))
    np.testing.assert_allclose(matches.logits(two, muted), [5.0, -1.6], atol=1e-6)


def test_the_known_answer_of_gates(model: Any, found: Artifact) -> None:
    """G1 of the specification, through an edit: val = (.9, .8, .4, .7)."""
    val = np.array(found.arrays["found_val"])
    slot = np.array(found.arrays["found_slot"])
    val[0], slot[0] = (0.9, 0.8, 0.4, 0.7), 1
    active = np.array(found.arrays["found_activation"])
    active[0] = 2.8
    stored = dataclasses.replace(
        found, arrays={**found.arrays, "found_val": val, "found_slot": slot, "found_activation": active}
    )
    for gated, expected in (([], 2.8), ([2], 3.2), ([0], 2.5333333), ([1, 2, 3], 3.6), ([0, 1, 2, 3], 0.0)):
        made, _ = edited(model, stored, *({"gate_part": [0, k]} for k in gated))
        assert made.arrays["activation"][0] == pytest.approx(expected, abs=1e-6), gated


def test_explaining_and_editing_never_change_the_weights(model: Any, found: Artifact) -> None:
    before = digest(model)
    explained(ProtoViT, model, [item(model, n) for n in range(3)])
    edits = [{"exclude_region": [0, 0, 4, 4]}, {"remove_part": [0, 0]}, {"gate_part": [1, 1]}, {"mute_prototype": 2}]
    edited(model, found, *edits, {"why_not": 0})
    ProtoViT().suggest(model, [found], [], ProtoViT.Params())
    assert digest(model) == before


def test_suggestions_hold_the_nearest_training_patches_with_their_pictures(model: Any, found: Artifact) -> None:
    said = ProtoViT().suggest(model, [found], [], ProtoViT.Params())
    assert len(said["flips"]) == 2
    for j, near in said["nearest"].items():
        own = small().sources[int(j)].image
        order = [i for i in small().nearest.image[int(j)].tolist() if i != own][:3]
        assert [n["image"] for n in near] == order
        assert all(n["picture"].startswith("data:image/jpeg;base64,") for n in near)


def test_a_source_that_is_gone_is_said_and_stays_in_what_was_stored_before(tmp_path: Path, found: Artifact) -> None:
    folder = write(tmp_path / "gone")
    for file in (folder / "pictures").iterdir():
        file.unlink()
    poor = bundles.load(folder)
    artifact = explained(ProtoViT, poor, item(poor))[0].check()
    detail = renderer("prototypes").detail(artifact)
    assert {r["source"]["status"] for r in detail["rows"]} == {"unavailable"} and detail["pictures"] == {}
    assert "source not on this machine" in {row[6] for row in renderer("prototypes").table(artifact).rows} or all(
        row[6] for row in renderer("prototypes").table(artifact).rows[:-2]
    )
    kept, _ = edited(poor, found, {"mute_prototype": 0})
    assert renderer("prototypes").detail(kept)["rows"][0]["source"]["status"] == "projected"


def test_the_difference_of_two_classes_is_explained_too(model: Any) -> None:
    made = explained(ProtoViT, model, item(model, target=Target(2, 0)))[0].check()
    logits = item(model).logits
    assert renderer("prototypes").detail(made)["total"] == pytest.approx(float(logits[2] - logits[0]), abs=1e-5)


def test_concepts_and_similarity_are_refused_in_a_sentence(model: Any) -> None:
    one = item(model)
    asked = dataclasses.replace(one, target=Target(0, similar_to="f" * 64))
    with pytest.raises(InvalidField, match="explains classes"):
        explained(ProtoViT, model, asked)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ({"mute_prototype": 6}, "no prototype 6"),
        ({"mute_prototype": True}, "no prototype True"),
        ({"gate_part": [0, 4]}, "no part 4"),
        ({"gate_part": 3}, "named by its prototype"),
        ({"remove_part": [-1, 0]}, "no prototype -1"),
        ({"exclude_region": [0, 0, 32, 32]}, "4 places"),
        ({"exclude_region": [40, 40, 50, 50]}, "outside"),
        ({"exclude_region": [4, 4, 2, 8]}, "four numbers"),
        ({"exclude_region": [0, 0, float("inf"), 1]}, "four numbers"),
        ({"why_not": 3}, "no class 3"),
    ],
)
def test_edits_that_make_no_sense_are_sentences(found: Artifact, edit: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidField, match=said) as caught:
        ProtoViT.canonical([edit], found.meta)
    assert caught.value.code == "invalid_edit" and caught.value.allowed


def test_edits_have_one_form(found: Artifact) -> None:
    about = found.meta
    one = [{"mute_prototype": 3}, {"gate_part": [3, 1]}, {"gate_part": [0, 2]}, {"remove_part": [0, 2]}, {"why_not": 1}]
    two = [{"why_not": 0}, {"remove_part": [0, 2]}, {"why_not": 1}, {"mute_prototype": 3}, {"mute_prototype": 3}]
    expected = [{"remove_part": [0, 2]}, {"mute_prototype": 3}, {"why_not": 1}]
    assert ProtoViT.canonical(one, about) == ProtoViT.canonical(two, about) == expected
    assert changes.Changes.of(expected).removed() == {0: [2]}


def test_a_batch_shares_a_pass(model: Any) -> None:
    items = [item(model, n) for n in range(4)]
    model.asked = 0
    explained(ProtoViT, model, items, Context(8))
    assert model.asked == 4
