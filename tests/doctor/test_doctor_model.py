from pathlib import Path

import pytest

from fanlight.adapters import loader
from fanlight.doctor import costs, model
from fanlight.explainers.registry import registry

SOUND_PART = "self.head(self.norm(self.conv(x)).mean((2, 3)))"


def outcomes(report):
    return {c.name: c.outcome for c in report.checks}


def test_a_sound_model_passes_and_every_explainer_has_a_cost_or_a_reason(model_file):
    report = model.examine(model_file())
    assert report.sound, report
    assert {name for name, outcome in outcomes(report).items() if outcome != "good"} == {"attention"}
    assert {"embedding", "gradients", "spatial-features"} <= set(report.details["model"]["capabilities"])
    assert report.details["explainers"]
    for row in report.details["explainers"]:
        if not row["available"]:
            assert row["reason"].endswith(".")
            continue
        assert row["measured"] and row["error"] is None and row["forwards"] >= 0 and row["seconds"] > 0
        assert row["peak_mb"] is None or 0 <= row["peak_mb"] < 2000


def test_a_model_without_a_grid_of_features_is_told_which_methods_it_misses(model_file):
    report = model.inspect(model_file(at=None))
    rows = {row["name"]: row for row in report.details["explainers"]}
    assert report.sound
    assert outcomes(report)["features"] == "none"
    assert "grid of features" in rows["grad-cam"]["reason"]
    assert rows["saliency"]["available"]


@pytest.mark.parametrize(
    ("forward", "check", "says"),
    [
        (f"return {SOUND_PART} * float('nan')", "finite", "NaN"),
        (f"return torch.nn.functional.dropout({SOUND_PART}, 0.5, True)", "repeats", "different logits"),
        (f"return {SOUND_PART}[:, :1]", "shape", "(1, 1)"),
        (f"return {SOUND_PART}.mean(0, keepdim=True)", "shape", "4 pictures"),
        ("raise RuntimeError('no such weight')", "run", "no such weight"),
        (f"return {SOUND_PART} - {SOUND_PART}.mean(0)", "batch", "beside it"),
        (f"y = {SOUND_PART}\nself.train()\nreturn y", "side effects", "training mode"),
        (f"y = {SOUND_PART}\nself.norm.num_batches_tracked += 1\nreturn y", "side effects", "num_batches_tracked"),
        (f"return {SOUND_PART}.detach()", "run", "grad"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(model_file, forward, check, says):
    report = model.inspect(model_file(forward))
    wrong = [c for c in report.checks if c.outcome == "bad"]
    assert [c.name for c in wrong] == [check]
    assert says in wrong[0].says
    assert "Traceback" not in wrong[0].says


def test_a_model_that_prints_does_not_spoil_the_report(model_file):
    assert model.examine(model_file("print('hello')\nreturn " + SOUND_PART)).sound


def test_a_model_that_ends_the_process_is_a_finding(model_file):
    report = model.examine(model_file("os.kill(os.getpid(), signal.SIGKILL)"))
    assert [c.outcome for c in report.checks] == ["bad"]
    assert "SIGKILL" in report.checks[0].says


def test_a_path_that_is_no_model_says_what_a_model_is(tmp_path):
    report = model.inspect(str(tmp_path / "missing.py"))
    assert not report.sound
    assert "neither a bundle folder nor a Python file" in report.checks[0].says


def test_a_model_that_ignores_its_input_gets_a_note(model_file):
    found = outcomes(model.inspect(model_file(f"return {SOUND_PART} * 0 + torch.tensor([1.0, 2.0])")))
    assert found["input"] == "warning" and found["gradients"] == "warning"


VIT = """
import sys
sys.path.insert(0, {tests!r})
from support.tiny_vit import network
from fanlight.adapters.image_classifier import Preprocessing, TorchImageClassifier

def load():
    net = network()
    return TorchImageClassifier(net, list("abcde"), Preprocessing((32, 32)), features_at={at!r})
"""


def test_a_transformer_is_told_its_tokens_its_attention_and_its_embedding(tmp_path):
    file = tmp_path / "vit.py"
    file.write_text(VIT.format(tests=str(Path(__file__).resolve().parents[1]), at="auto"))
    said = {c.name: c.says for c in model.inspect(str(file), seconds=10).checks}
    assert said["features"] == "Grid of 4 x 4 with 8 features at blocks.1.norm1."
    assert said["attention"] == "2 layers with 2 heads over 4 x 4 places and 1 tokens before them."
    assert said["embedding"] == "8 values before the last layer."
    file.write_text(VIT.format(tests=str(Path(__file__).resolve().parents[1]), at="blocks.1"))
    report = model.inspect(str(file), seconds=10)
    assert outcomes(report)["features"] == "warning" and report.sound


def test_an_explainer_that_fails_or_leaves_something_behind_is_a_finding(model_file, tmp_path, monkeypatch):
    for body, says in (
        ("raise RuntimeError('no such luck')", "bad-luck (RuntimeError: no such luck)"),
        ("model.net.conv.register_forward_hook(lambda *_: None)", "1 hooks are left on it"),
        ("model.net.conv.train()", "training mode"),
        ("model.net.head.bias.data += 1", "head.bias"),
    ):
        file = tmp_path / "bad_luck.py"
        file.write_text(EXPLAINER.format(body=body))
        monkeypatch.setenv("FANLIGHT_EXPLAINERS", str(file))
        registry.cache_clear()
        report = model.inspect(model_file(), seconds=30)  # enough to come to it on a busy machine
        (found,) = [c for c in report.checks if c.name == "explainers"]
        assert found.outcome == "bad" and says in found.says
    registry.cache_clear()


EXPLAINER = """
from fanlight.explainers import base

class BadLuck(base.Explainer):
    name, title, family, version = "bad-luck", "Bad luck", "attribution", "1"
    accepts, returns = "image-classifier", ("image-map",)

    class Params(base.Params):
        pass

    @classmethod
    def cost(cls, params, size):
        return 1

    def run(self, model, items, params, ctx):
        yield base.Step(0.5)
        {body}
        return []
"""


def test_what_takes_too_long_is_stopped_and_projected(model_file):
    found = loader.load(loader.source(model_file()))
    one = costs.item(found, next(model.pictures()))
    explainer = registry()["integrated-gradients"]
    whole = costs.measured(found, explainer, one, 60, costs.Peak(found.device))
    part = costs.measured(found, explainer, one, 0, costs.Peak(found.device))
    assert whole["measured"] and not part["measured"] and part["seconds"] > 0
