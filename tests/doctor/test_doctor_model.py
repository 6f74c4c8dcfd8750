import pytest

from fanlight.doctor import model

SOUND_PART = "self.head(self.norm(self.conv(x)).mean((2, 3)))"


def outcomes(report):
    return {c.name: c.outcome for c in report.checks}


def test_a_sound_model_passes_and_every_explainer_has_a_cost_or_a_reason(model_file):
    report = model.examine(model_file())
    assert report.sound, report
    assert set(outcomes(report).values()) == {"good"}
    assert report.details["model"]["capabilities"] == ["embedding", "gradients", "spatial-features"]
    assert report.details["explainers"]
    for row in report.details["explainers"]:
        assert row["forwards"] >= 0 if row["available"] else row["reason"].endswith(".")


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
