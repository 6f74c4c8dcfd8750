from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from fanlight.adapters import loader, python_file
from fanlight.adapters.bundle import BadBundle
from fanlight.adapters.python_file import BadModelFile
from fanlight.errors import BadRequest
from fanlight_models.efficientnet_lite import EfficientNetLite0
from support.explaining import STRUCTURE

TOML = """
format = 1
name = "Small"
task = "image-classifier"
architecture = "efficientnet-lite0"
features = "head"
[config]
classes = 3
[preprocessing]
size = [64, 64]
crop = 0.5
"""


@pytest.fixture(scope="module")
def weights():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return EfficientNetLite0(classes=3).state_dict()


@pytest.fixture
def folder(tmp_path: Path, weights) -> Path:
    path = tmp_path / "small"
    path.mkdir()
    (path / "bundle.toml").write_text(TOML)
    (path / "classes.txt").write_text("ant\nbee\ncat\n")
    (path / "card.md").write_text("# Small\n")
    save_file(weights, path / "weights.safetensors")
    return path


def refused(folder: Path) -> str:
    with pytest.raises(BadBundle) as error:
        loader.load({"bundle": str(folder)})
    assert error.value.message.endswith(".") and "Traceback" not in error.value.message
    return error.value.message


def test_a_bundle_loads_and_describes_itself(folder):
    model = loader.load({"bundle": str(folder)})
    assert model.size == (64, 64) and model.preprocessing.crop == 0.5
    about = loader.describe({"bundle": str(folder)})
    assert about["digest"] == model.digest == loader.load({"bundle": str(folder)}).digest
    assert about["classes"] == ["ant", "bee", "cat"] and set(about["capabilities"]) - STRUCTURE == {
        "embedding",
        "gradients",
        "spatial-features",
    }
    assert json.loads(json.dumps(about)) == about
    assert loader.read_card({"bundle": str(folder)}) == {
        "name": "Small",
        "description": "",
        "terms": "",
        "card": "# Small\n",
    }


def test_reading_a_card_needs_no_torch_and_no_weights(folder):
    (folder / "weights.safetensors").write_bytes(b"not read")
    code = f"import sys; from fanlight.adapters.loader import read_card; read_card({{'bundle': {str(folder)!r}}}); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


@pytest.mark.parametrize("file", ["bundle.toml", "weights.safetensors", "classes.txt"])
def test_a_folder_without_one_of_its_files_is_no_bundle(folder, file):
    (folder / file).unlink()
    assert f"it lacks {file}" in refused(folder)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("format = 1", "format = 2", "reads format 1"),
        ("format = 1", "format = ", "not valid TOML"),
        ('name = "Small"', "", "lacks name"),
        ('name = "Small"', "name = 7", "name must be a text"),
        ('features = "head"', 'pickle = "x"', "unknown keys pickle"),
        ("efficientnet-lite0", "os.system", "architecture “os.system”, which is not known"),
        ("image-classifier", "oracle", "task 'oracle', which is not known"),
        ("classes = 3", "classes = 4", "classifier.bias"),
        ("classes = 3", "layers = 3", "does not fit the architecture"),
        ('features = "head"', 'features = "tail"', "no module “tail”"),
        ("crop = 0.5", "crop = 5.0", "share of the picture"),
        ("crop = 0.5", "zoom = 5.0", "does not fit"),
        ("size = [64, 64]", "", "does not fit"),
    ],
)
def test_a_wrong_bundle_toml_is_refused_in_a_sentence(folder, old, new, sentence):
    text = (folder / "bundle.toml").read_text()
    assert old in text
    (folder / "bundle.toml").write_text(text.replace(old, new))
    assert sentence in refused(folder)


def test_too_few_class_names_are_refused(folder):
    (folder / "classes.txt").write_text("ant\nbee\n")
    with pytest.raises(BadRequest, match=r"shape \[1, 3\]; \(1, 2\) is expected"):
        loader.describe({"bundle": str(folder)})


def test_a_configuration_that_asks_for_terabytes_allocates_nothing(folder):
    (folder / "bundle.toml").write_text(TOML.replace("classes = 3", f"classes = {10**12}"))
    assert "[1000000000000] is expected" in refused(folder)


def test_texts_that_are_huge_or_no_text_are_refused(folder):
    (folder / "classes.txt").write_bytes(b"\xff\xfe\x00")
    assert "not UTF-8" in refused(folder)
    (folder / "classes.txt").write_text("a\n" * (1 << 20))
    assert "larger than 1 MiB" in refused(folder)


def changed(folder: Path, change) -> None:
    tensors = load_file(folder / "weights.safetensors")
    change(tensors)
    save_file(tensors, folder / "weights.safetensors")


def test_weights_that_do_not_fit_are_refused(folder):
    changed(folder, lambda t: t.update({"stem.bias": t["stem.bias"].double()}))
    assert "stem.bias" in refused(folder) and "float64" in refused(folder)
    changed(folder, lambda t: t.update({"stem.bias": torch.full((32,), float("nan"))}))
    assert "not finite" in refused(folder)
    changed(folder, lambda t: t.update({"stem.bias": torch.zeros(31)}))
    assert "[31]" in refused(folder)
    changed(folder, lambda t: t.pop("stem.bias"))
    assert "1 tensors are missing and 0 unknown" in refused(folder)
    changed(folder, lambda t: t.update({"stem.bias": torch.zeros(32), "extra": torch.zeros(1)}))
    assert "0 tensors are missing and 1 unknown" in refused(folder)


def header(value: dict) -> bytes:
    text = json.dumps(value).encode()
    return struct.pack("<Q", len(text)) + text


@pytest.mark.parametrize(
    ("blob", "sentence"),
    [
        (b"", "no safetensors file"),
        (b"PK\x03\x04 a zip as torch.save makes it" * 10, "no safetensors file"),
        (struct.pack("<Q", 3 << 20) + b" " * (3 << 20) + b"{}", "allowed: up to 1048576"),
        (struct.pack("<Q", 10) + b"{not json}", "cannot be understood"),
        (struct.pack("<Q", 100_000) + b"[" * 100_000, "cannot be understood"),
        (header({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}) + b"1234", "damaged or cut short"),
        (header({"a": {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 4]}}) + b"1234", "damaged or cut short"),
        (header({"a": {"dtype": "F32", "shape": [-1, -1], "data_offsets": [0, 4]}}) + b"1234", "negative size"),
        (header({"a": {"dtype": "X9", "shape": [1], "data_offsets": [0, 4]}}) + b"1234", "cannot be understood"),
        (
            header({k: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]} for k in "ab"}) + b"12345678",
            "damaged or cut short",
        ),
    ],
)
def test_files_that_are_not_safetensors_are_refused_before_a_library_reads_them(folder, blob, sentence):
    (folder / "weights.safetensors").write_bytes(blob)
    assert sentence in refused(folder)


def test_the_example_of_a_model_of_your_own_works(root):
    file = root / "models" / "examples" / "colours.py"
    assert len(file.read_text().splitlines()) <= 20
    about = loader.describe(loader.source(file))
    assert about["name"] == "Colours" and about["classes"] == ["red", "green", "blue"]
    model = loader.load({"file": str(file)})
    assert model.digest == about["digest"]
    for n, name in enumerate(model.classes):
        plain = np.full((50, 40, 3), 60, dtype=np.uint8)
        plain[:, :, n] = 200
        assert model.classes[int(model.logits(model.prepare(plain)[None]).argmax())] == name


def test_listing_a_python_file_does_not_run_it(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text('"""My model.\n\nMore."""\nraise SystemExit("was run")\n')
    assert loader.read_card({"file": str(file)})["description"] == "My model."


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("def load(:", "not valid Python"),
        ("x = 1", "has no function load"),
        ("def load():\n    return 7", "returned int; it must return a TorchImageClassifier"),
        ("import no_such_module_anywhere\ndef load(): ...", "failed in line 1: ModuleNotFoundError"),
        ("def load():\n    a = 1\n    return a / 0", "failed in line 3: ZeroDivisionError"),
        ("def load():\n    import sys\n    sys.exit(3)", "failed in line 3: SystemExit"),
    ],
)
def test_a_python_file_that_goes_wrong_is_named_with_its_line(tmp_path, text, sentence):
    file = tmp_path / "mine.py"
    file.write_text(text)
    with pytest.raises(BadModelFile) as error:
        loader.load({"file": str(file)})
    assert sentence in error.value.message


def test_a_network_that_fails_on_a_picture_is_refused_in_a_sentence(root, tmp_path):
    file = tmp_path / "mine.py"
    text = (root / "models" / "examples" / "colours.py").read_text()
    file.write_text(text.replace("kernel_size=1", "kernel_size=1, groups=3"))
    with pytest.raises(BadRequest, match="failed on a plain grey picture: RuntimeError"):
        loader.describe({"file": str(file)})


def test_the_text_of_a_python_file_is_part_of_the_digest(root, tmp_path):
    text = (root / "models" / "examples" / "colours.py").read_text()
    first, second = tmp_path / "a.py", tmp_path / "b.py"
    first.write_text(text)
    second.write_text(text + "# a comment\n")
    assert python_file.load(first).digest != python_file.load(second).digest
    second.write_text(text)
    assert python_file.load(first).digest == python_file.load(second).digest


def test_a_model_with_the_wrong_number_of_outputs_is_refused(root, tmp_path):
    file = tmp_path / "mine.py"
    text = (root / "models" / "examples" / "colours.py").read_text()
    file.write_text(text.replace('["red", "green", "blue"]', '["red", "other"]'))
    with pytest.raises(BadRequest, match=r"shape \[1, 3\]; \(1, 2\) is expected"):
        loader.describe({"file": str(file)})


def test_a_source_is_a_folder_or_a_python_file(folder, tmp_path):
    assert loader.source(folder) == {"bundle": str(folder)}
    with pytest.raises(BadRequest, match="neither a bundle folder nor a Python file"):
        loader.source(tmp_path / "weights.pth")
    with pytest.raises(BadRequest, match="names a bundle, a file or a model of a library"):
        loader.load({"pickle": "x"})
