"""The trainer: it learns, goes on from its checkpoint to the same weights, and refuses what is not its own."""

from __future__ import annotations

import pytest
import torch

from fanlight_models.concepts.answers import Answers
from fanlight_models.concepts.bundle import KINDS, build
from fanlight_models.concepts.training import Epoch, Plan, TensorCases, train

K, C, F = 4, 3, 8


def cases(n: int = 256) -> TensorCases:
    chance = torch.Generator().manual_seed(0)
    x = torch.randn(n, F, generator=chance)
    concepts = (x[:, :K] + 0.1 * torch.randn(n, K, generator=chance) > 0).float()
    labels = (concepts[:, 0] + concepts[:, 1]).long()
    return TensorCases(x, concepts, labels)


def fresh(kind: str = "scbm", **options: object):
    torch.manual_seed(5)
    return build(
        {
            "kind": kind,
            "concepts": K,
            "classes": C,
            "encoder": {"kind": "features", "inputs": F, "hidden": 16},
            **options,
        }
    )


def plan(**changes: object) -> Plan:
    return Plan(
        **{
            "epochs": 4,
            "head_epochs": 2,
            "rate": 1e-2,
            "batch": 32,
            "samples": 8,
            "schedule": "constant",
            "average": 0.5,
            **changes,
        }
    )  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "mode"),
    [(k, m) for k in KINDS for m in ("joint", "sequential", "independent") if (k, m) != ("autoregressive", "joint")],
)
def test_it_learns_concepts_and_classes(kind: str, mode: str) -> None:
    data, model = cases(), fresh(kind)
    assert train(model, data, plan(mode=mode, epochs=24, head_epochs=60))
    found = model.intervene(model.read(data.x), Answers.none(len(data.x), K))
    assert ((found.concepts > 0.5) == (data.concepts > 0.5)).double().mean() > 0.93
    # a soft head that was shown +-2.944 alone meets other logits afterwards
    least = 0.6 if (kind, mode) == ("soft-cbm", "independent") else 0.75
    assert (found.classes.argmax(1) == data.labels).double().mean() > least


@pytest.mark.parametrize("covariance", ["amortized", "global", "empirical"])
@pytest.mark.parametrize("stop", [2, 5])
def test_it_goes_on_from_its_checkpoint_to_the_same_weights(tmp_path, covariance: str, stop: int) -> None:
    data, way = cases(), plan(mode="sequential")
    whole = fresh(covariance=covariance)
    train(whole, data, way)

    file = tmp_path / "checkpoint.safetensors"
    assert not train(fresh(covariance=covariance), data, way, checkpoint=file, stop=stop)
    again = fresh(covariance=covariance)
    assert train(again, data, way, checkpoint=file)
    for name, value in whole.state_dict().items():
        torch.testing.assert_close(again.state_dict()[name], value, rtol=1e-5, atol=1e-7, msg=name)


def test_a_finished_checkpoint_gives_the_model_at_once(tmp_path) -> None:
    file, data = tmp_path / "checkpoint.safetensors", cases()
    told: list[Epoch] = []
    first, second = fresh(), fresh()
    train(first, data, plan(mode="independent"), checkpoint=file, progress=told.append)
    assert [(e.stage, e.number, e.of) for e in told] == [("concepts", n, 4) for n in (1, 2, 3, 4)] + [
        ("target-on-truth", n, 2) for n in (1, 2)
    ]
    told.clear()
    train(second, data, plan(mode="independent"), checkpoint=file, progress=told.append)
    assert told == []
    for name, value in first.state_dict().items():
        assert torch.equal(second.state_dict()[name], value), name


def test_a_checkpoint_of_another_plan_or_model_is_refused(tmp_path) -> None:
    file, data = tmp_path / "checkpoint.safetensors", cases()
    train(fresh(), data, plan(), checkpoint=file, stop=1)
    with pytest.raises(ValueError, match="another plan"):
        train(fresh(), data, plan(rate=2e-2), checkpoint=file)
    with pytest.raises(ValueError, match="another model"):
        train(fresh("hard-cbm"), data, plan(), checkpoint=file)


def test_the_rate_is_that_of_the_paper_or_constant_with_a_cool_down() -> None:
    step = plan(schedule="step")
    assert [step.share(e, 0.0) for e in (0, 149, 150, 300)] == [1, 1, 0.5, 0.25]
    constant = plan(cool=0.5)
    assert [constant.share(0, d) for d in (0.0, 0.5, 0.75, 1.0)] == [1, 1, 0.5, 0]


def test_averaged_weights_are_the_mean_of_the_last_epochs() -> None:
    data, seen = cases(), []
    model = fresh("hard-cbm")
    train(model, data, plan(average=0.5), progress=lambda _: seen.append(model.mean.weight.detach().clone()))
    torch.testing.assert_close(model.mean.weight.detach(), torch.stack(seen[2:]).mean(0))


@pytest.mark.parametrize("wrong", [{"mode": "both"}, {"schedule": "cosine"}, {"epochs": -1}, {"rate": 0.0}])
def test_a_plan_that_cannot_be_is_refused(wrong: dict) -> None:
    with pytest.raises(ValueError, match="is no|at least|above 0"):
        plan(**wrong)


def test_a_loss_that_is_not_finite_ends_training_with_a_sentence() -> None:
    data = cases()
    data.x[3, 2] = torch.nan
    with pytest.raises(ValueError, match="not finite|not positive"):
        train(fresh(), data, plan())
