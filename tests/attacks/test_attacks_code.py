"""Nothing that comes from outside is run: no pickle at any door, no template in any text, no statement in any filter."""

from __future__ import annotations

import ast
import io
import json
import pickle
import re
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from attacks_rig import Target, clean, noise, sentence
from safetensors.torch import save_file

from fanlight.adapters import loader
from fanlight.artifact import Artifact, digest
from fanlight.blobs import Blobs
from fanlight.errors import FanlightError
from fanlight_models.efficientnet_lite import EfficientNetLite0
from fanlight_models.shards import strangers

BUNDLE = """
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


class Canary:
    """Whoever unpickles it makes a file."""

    def __init__(self, file: Path):
        self.file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.file,)


@pytest.fixture
def canary(tmp_path: Path) -> Iterator[Canary]:
    """Is still unhatched at the end of the test; that it would hatch is seen first."""
    made = Canary(tmp_path / "hatched")
    pickle.loads(pickle.dumps(made))
    assert made.file.exists()
    made.file.unlink()
    yield made
    assert not made.file.exists(), "the pickle was opened"


def _plain(canary: Canary) -> bytes:
    return pickle.dumps(canary)


def _torch(canary: Canary) -> bytes:
    out = io.BytesIO()
    torch.save(canary, out)
    return out.getvalue()


def _old_torch(canary: Canary) -> bytes:
    out = io.BytesIO()
    torch.save(canary, out, _use_new_zipfile_serialization=False)
    return out.getvalue()


def _numpy(canary: Canary) -> bytes:
    out = io.BytesIO()
    np.save(out, np.array([canary], dtype=object), allow_pickle=True)
    return out.getvalue()


def _numpy_zip(canary: Canary) -> bytes:
    out = io.BytesIO()
    np.savez(out, x=np.array([canary], dtype=object))
    return out.getvalue()


def _zip(canary: Canary) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        made.writestr("data.pkl", pickle.dumps(canary))
        made.writestr("../../evil.py", "import os")
    return out.getvalue()


PICKLES: dict[str, Callable[[Canary], bytes]] = {
    "pickle": _plain, "torch": _torch, "torch of before": _old_torch, "npy": _numpy, "npz": _numpy_zip, "zip": _zip,
}  # fmt: skip


@pytest.mark.parametrize("kind", PICKLES)
def test_an_upload_is_a_picture_or_nothing(target: Target, canary: Canary, kind: str) -> None:
    blob = PICKLES[kind](canary)
    for name in ("x.png", "x.pt", "x.pkl", "x.npy", "x.safetensors"):
        answer = target.upload(blob, name)
        assert answer.status_code == 415 and sentence(answer), (name, answer.text)
    for kind_of_body in ("application/octet-stream", "application/x-pickle", "application/json", "text/plain"):
        for path in ("/inputs", "/explanations", "/live", "/shares"):
            answer = target.call("POST", path, content=blob, headers={"content-type": kind_of_body})
            assert 400 <= answer.status_code < 500 and clean(answer.text) == [], (path, kind_of_body)


@pytest.mark.parametrize("kind", PICKLES)
def test_a_picture_with_a_pickle_behind_it_is_pixels_and_nothing_else(
    target: Target, canary: Canary, kind: str
) -> None:
    blob = PICKLES[kind](canary)
    answer = target.upload(noise(77) + blob)
    assert answer.status_code in (201, 415), answer.text
    if answer.status_code == 201:
        kept = target.call("GET", f"/inputs/{answer.json()['id']}/image.png").content
        assert blob[:64] not in kept


def bundle(folder: Path) -> Path:
    path = folder / "small"
    path.mkdir()
    (path / "bundle.toml").write_text(BUNDLE)
    (path / "classes.txt").write_text("ant\nbee\ncat\n")
    (path / "card.md").write_text("# Small\n")
    torch.manual_seed(0)
    save_file(EfficientNetLite0(classes=3).state_dict(), path / "weights.safetensors")
    return path


@pytest.mark.parametrize("kind", PICKLES)
def test_a_bundle_holds_no_pickle_under_any_name(tmp_path: Path, canary: Canary, kind: str) -> None:
    blob, path = PICKLES[kind](canary), bundle(tmp_path)
    for beside in ("weights.pt", "weights.bin", "pytorch_model.bin", "weights.pkl", "model.py", "__init__.py"):
        (path / beside).write_bytes(blob if not beside.endswith(".py") else f"open({str(canary.file)!r}, 'w')".encode())
    assert loader.load({"bundle": str(path)}).classes == ("ant", "bee", "cat")
    for name in ("weights.safetensors", "classes.txt", "bundle.toml"):
        kept = (path / name).read_bytes()
        (path / name).write_bytes(blob)
        with pytest.raises(FanlightError) as refused:
            loader.load({"bundle": str(path)})
        assert refused.value.message.endswith(".") and clean(refused.value.message) == []
        (path / name).write_bytes(kept)


@pytest.mark.parametrize("where", ["alone", "beside an empty safetensors", "as safetensors", "by an index", "as code"])
def test_a_folder_of_transformers_holds_no_pickle(tmp_path: Path, canary: Canary, where: str) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.ResNetConfig(embedding_size=4, hidden_sizes=[4], depths=[1], num_labels=3)
    transformers.ResNetForImageClassification(config).save_pretrained(tmp_path)
    size = {"shortest_edge": 32}
    transformers.ConvNextImageProcessor(size=size).save_pretrained(tmp_path)
    loader.load({"transformers": str(tmp_path)})
    weights = tmp_path / "model.safetensors"
    if where == "as code":
        described = json.loads((tmp_path / "config.json").read_text())
        described["auto_map"] = {"AutoModelForImageClassification": "evil.Net"}
        (tmp_path / "config.json").write_text(json.dumps(described))
        (tmp_path / "evil.py").write_text(f"open({str(canary.file)!r}, 'w')\n")
    else:
        weights.unlink()
        (tmp_path / "pytorch_model.bin").write_bytes(_torch(canary))
    if where == "beside an empty safetensors":
        save_file({"x": torch.zeros(1)}, tmp_path / "other.safetensors")
    elif where == "as safetensors":
        weights.write_bytes(_torch(canary))
    elif where == "by an index":
        save_file({"x": torch.zeros(1)}, tmp_path / "other.safetensors")
        index = {"metadata": {}, "weight_map": {"classifier.1.weight": "pytorch_model.bin"}}
        (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(FanlightError) as refused:
        loader.load({"transformers": str(tmp_path)})
    assert refused.value.message.endswith(".") and "Traceback" not in refused.value.message


NAMED = ("x.bin", "../x.safetensors", "/x.safetensors", "a/x.safetensors", "x.pt", 3, None)


@pytest.mark.parametrize("name", NAMED)
def test_an_index_of_weights_names_safetensors_beside_it(tmp_path: Path, name: Any) -> None:
    """For every library that reads weights in several files: transformers, diffusers, masked language models."""
    index = tmp_path / "diffusion_pytorch_model.safetensors.index.fp16.json"
    index.write_text(json.dumps({"weight_map": {"a": "x-00001.safetensors", "b": name}}))
    assert strangers(tmp_path) == [str(name)]
    index.write_text(json.dumps({"weight_map": {"a": "x-00001.safetensors"}}))
    assert strangers(tmp_path) == []
    index.write_text("[")
    assert strangers(tmp_path) == [index.name]


@pytest.mark.parametrize("kind", PICKLES)
def test_an_artifact_is_arrays_and_text(tmp_path: Path, canary: Canary, kind: str) -> None:
    """Even where the digest is right: whoever writes to the store still has nothing run."""
    blob = PICKLES[kind](canary)
    with pytest.raises(ValueError):
        Artifact.from_bytes(blob)
    blobs = Blobs(str(tmp_path / "store"))
    path = tmp_path / "store" / (name := blobs.put(b"x"))[:2] / name[2:4] / name
    path.write_bytes(blob)
    with pytest.raises(FanlightError, match="damaged"):
        blobs.get(name)
    assert blobs.get(blobs.put(blob)) == blob and digest(blob) != name


@pytest.mark.parametrize("kind", PICKLES)
def test_an_artifact_that_somebody_exchanged_is_not_opened(target: Target, canary: Canary, kind: str) -> None:
    record = target.explain(input=target.picture, seed=list(PICKLES).index(kind) + 1)
    name = record["artifacts"][0]["digest"]
    path = target.server.data / "artifacts" / name[:2] / name[2:4] / name
    whole = path.read_bytes()
    path.write_bytes(PICKLES[kind](canary))
    for part in ("", "/raw", "/render.png", "/table.csv"):
        answer = target.call("GET", f"/artifacts/{name}{part}")
        assert answer.status_code in (404, 409, 410, 422, 500, 503) and answer.json()["error"]["code"] in (
            "artifact_damaged",
            "artifact_gone",
        ), (part, answer.text)
        assert clean(answer.text) == []
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(whole)
    assert target.call("GET", f"/artifacts/{name}/raw").status_code == 200


@pytest.mark.parametrize("kind", PICKLES)
def test_a_backup_is_a_database_and_blobs(tmp_path: Path, canary: Canary, kind: str) -> None:
    from fanlight.service.backup import restore
    from fanlight.settings import Settings

    (tmp_path / "x.tar").write_bytes(PICKLES[kind](canary))
    with pytest.raises(FanlightError):
        restore(Settings(data_dir=tmp_path / "new"), tmp_path / "x.tar")
    assert not (tmp_path / "new" / "fanlight.sqlite").exists()


def test_the_worker_reads_json_and_nothing_else(tmp_path: Path, canary: Canary) -> None:
    """The other side of the seam: what is no JSON ends the process, whatever it holds."""
    config = {"artifacts": str(tmp_path / "a"), "device": "cpu", "threads": 1, "explainers": []}
    pickled = pickle.dumps(canary) + b"\n"
    for said in (pickled, json.dumps(config).encode() + b"\n" + pickled):
        child = subprocess.Popen(
            [sys.executable, "-m", "fanlight.engine.child"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )  # fmt: skip
        with child:
            assert child.stdin is not None and child.stdout is not None
            child.stdin.write(said)
            child.stdin.flush()  # and stays open: it is what was said that ends it
            assert child.wait(120) == 1 and b"answered" not in child.stdout.read()


OPENERS = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
CALLS = {"load", "loads", "Unpickler", "read_pickle"}
ALLOWED = {
    "backend/fanlight/adapters/python_file.py": "a model that its owner wrote in Python and named in the settings",
    "models/fanlight_models/convert.py": "a command of its own; torch's restricted unpickler",
    "models/fanlight_models/prototypes/published.py": "a command of its own; an unpickler that makes tensors alone",
}
"""Where something may be opened or run, and why that is not a door."""


def dangers(path: Path) -> list[str]:
    """What in a module could run what it is given."""
    found = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            found += [f"import {n}" for n in names if n.split(".")[0] in OPENERS]
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        options = {k.arg: ast.unparse(k.value) for k in node.keywords}
        if called in ("eval", "exec", "compile", "os.system", "os.popen") or called.startswith("torch.jit.load"):
            found.append(called)
        if called in ("torch.load", "torch.export.load", "torch.package.PackageImporter", "yaml.load", "pickle.load"):
            found.append(called)
        if options.get("allow_pickle") == "True" or options.get("trust_remote_code") == "True":
            found.append(called)
        if options.get("shell") == "True":
            found.append(f"{called} with a shell")
    return found


def test_no_module_of_the_server_can_open_a_pickle_or_run_a_text(root: Path) -> None:
    seen = {}
    for package in ("backend/fanlight", "frontend/fanlight_ui", "models/fanlight_models"):
        for path in sorted((root / package).rglob("*.py")):
            if found := dangers(path):
                seen[str(path.relative_to(root))] = found
    assert set(seen) == set(ALLOWED), {k: v for k, v in seen.items() if k not in ALLOWED}


def test_the_reader_of_modules_finds_what_it_looks_for(tmp_path: Path) -> None:
    for text in ("import pickle", "from joblib import load", "eval('1')", "np.load(f, allow_pickle=True)", "torch.load(f)",
                 "subprocess.run(c, shell=True)", "AutoModel.from_pretrained(f, trust_remote_code=True)"):  # fmt: skip
        (tmp_path / "m.py").write_text(text)
        assert dangers(tmp_path / "m.py"), text
    (tmp_path / "m.py").write_text("model.eval()\njson.loads(x)\nre.compile('x')\nnp.load(f)")
    assert dangers(tmp_path / "m.py") == []


TEMPLATES = ("{{ 98765*43 }}", "{% for x in ().__class__.__base__.__subclasses__() %}{% endfor %}", "{0.__class__}", "${98765*43}",
             "{message.__class__}", "%(x)s", "#{98765*43}", "<%= 98765*43 %>")  # fmt: skip


@pytest.mark.parametrize("template", TEMPLATES)
def test_no_text_is_a_template(target: Target, template: str) -> None:
    ident = target.explanation
    changed = target.call("PATCH", f"/explanations/{ident}", json={"title": template, "note": template, "tags": [template[:50]]})  # fmt: skip
    assert changed.status_code == 200 and changed.json()["title"] == template
    page = target.call("GET", f"/explanations/{ident}/export.html").text
    assert "4246895" not in page + target.call("GET", f"/explanations/{ident}/export.json").text
    share = target.call("POST", "/shares", json={"explanations": [ident]}).json()
    with target.browser() as http:
        shown = http.get(f"/s/{share['token']}")
        door = http.post("/login?x=" + "{{98765*43}}", data={"token": template}, headers={"accept": "text/html"})
    assert shown.status_code == 200 and ">4246895<" not in shown.text and "__class__" not in door.text
    for path in (f"/models/{template}", f"/explainers?x={template}"):
        answer = target.call("GET", path)
        assert 400 <= answer.status_code < 500 and clean(answer.text) == []
    target.call("PATCH", f"/explanations/{ident}", json={"title": "", "note": "", "tags": []})


STATEMENTS = ("' OR 1=1 --", "'; DROP TABLE explanation; --", '" OR ""="', "1) OR (1=1", "x' UNION SELECT token_hash FROM share --",
              "%", "_", "\\", "a*", '"a" OR "b"', "NEAR(a b)", "a AND NOT b", "title:x", "^a", "a OR", "(((", "{a}", "-", "*", "'")  # fmt: skip


@pytest.mark.parametrize("statement", STATEMENTS)
def test_no_filter_is_a_statement(target: Target, statement: str) -> None:
    """Every query parameter of every list, and the words of the search, which SQLite would take as a language of its own."""
    everything = target.call("GET", "/explanations").json()["total"]
    tried = 0
    for method, path, operation in target.operations():
        if method != "GET" or path.endswith("/events"):
            continue
        address = path.replace("{id}", target.explanation).replace("{digest}", target.artifact)
        for parameter in operation.get("parameters", []):
            if parameter["in"] == "query":
                begun = time.monotonic()
                answer = target.http.get(address, params={parameter["name"]: statement})
                assert answer.status_code < 500 and clean(answer.text) == [], (path, parameter["name"], answer.text)
                assert time.monotonic() - begun < 10, (path, parameter["name"])
                tried += 1
    assert tried > 40
    found = target.call("GET", "/explanations", params={"q": statement}).json()
    words = " ".join(re.findall(r"\w+", statement.replace("_", " ")))
    assert found["total"] == target.call("GET", "/explanations", params={"q": words}).json()["total"] <= everything
    assert target.call("GET", "/explanations", params={"tag": statement}).json()["total"] == 0
    assert target.call("GET", "/explanations").json()["total"] == everything


def test_nothing_was_left_behind(target: Target) -> None:
    assert target.call("GET", f"/explanations/{target.explanation}").status_code == 200
    assert shutil.which("evil.py") is None and not list(target.server.data.rglob("evil.py"))
