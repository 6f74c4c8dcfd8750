"""Checkpoints of the published format: read without running anything, and hostile ones refused. The files are made here."""

from __future__ import annotations

import os
import pickle
import sys
import types
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from fanlight_models.prototypes import published, vit
from fanlight_models.prototypes.protovit import ProtoViT

SHAPE = vit.Shape(size=64, patch=16, width=64, depth=2, heads=1)


def saved(ours: ProtoViT, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes it as the authors' code does: a whole pickled module of classes that are not here when it is read."""
    modules = {
        name: types.ModuleType(name) for name in ("model", "timm", "timm.models", "timm.models.vision_transformer")
    }
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)

    class PPNet(nn.Module):
        pass

    class VisionTransformer(nn.Module):
        pass

    PPNet.__module__, PPNet.__qualname__ = "model", "PPNet"
    VisionTransformer.__module__, VisionTransformer.__qualname__ = "timm.models.vision_transformer", "VisionTransformer"
    modules["model"].PPNet = PPNet  # type: ignore[attr-defined]
    modules["timm.models.vision_transformer"].VisionTransformer = VisionTransformer  # type: ignore[attr-defined]
    net, features = PPNet(), VisionTransformer()
    for name, child in ours.features.named_children():
        features.add_module(name, _plain(child))
    features.cls_token, features.pos_embed = ours.features.cls_token, ours.features.pos_embed
    net.features = features
    net.prototype_vectors, net.patch_select = ours.head.prototype_vectors, ours.head.patch_select
    net.ones = nn.Parameter(torch.ones(6, 64, 4), requires_grad=False)
    net.last_layer = ours.head.last_layer
    net.radius, net.temp, net.num_classes, net.arc = 1, 100, 3, "deit"  # type: ignore[assignment]
    torch.save(net, path)
    for name in modules:
        monkeypatch.delitem(sys.modules, name)


@pytest.fixture(params=["deit", "cait"])
def theirs(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, ProtoViT]:
    shape = vit.Shape(**{**vars(SHAPE), "kind": request.param})
    torch.manual_seed(0)
    ours = ProtoViT(shape, 3, per_class=2).eval()
    ours.head.round_gates()
    path = tmp_path / "theirs.pth"
    saved(ours, path, monkeypatch)
    return path, ours


def _plain(module: nn.Module) -> nn.Module:
    """The same weights in classes that every reader of the file would know by another name."""
    if not list(module.children()):
        made = type(module).__new__(type(module))
        made.__dict__.update(module.__dict__)
        return made if type(module).__module__.startswith("torch.nn") else _identity(module)
    box = nn.Module()
    for name, child in module.named_children():
        box.add_module(name, _plain(child))
    for name, value in module.named_parameters(recurse=False):
        box.register_parameter(name, value)
    return box


def _identity(_: nn.Module) -> nn.Module:
    return nn.Identity()


def test_a_file_of_the_published_format_becomes_the_same_network(theirs: tuple[Path, ProtoViT]) -> None:
    path, ours = theirs
    found = published.read(path)
    assert found.left_out == ["ones"]
    assert (found.classes, found.per_class, found.parts, found.radius, found.temperature) == (3, 2, 4, 1, 100.0)
    again = ProtoViT(found.backbone, found.classes, per_class=found.per_class).eval()
    again.load_state_dict(found.weights)
    x = torch.randn(2, 3, 64, 64)
    with torch.inference_mode():
        assert torch.equal(again(x).logits, ours(x).logits)


def test_the_command_writes_safetensors_and_what_it_knows(
    theirs: tuple[Path, ProtoViT], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, ours = theirs
    (tmp_path / "names.txt").write_text("a\nb\nc\n")
    given = [str(path), "--classes", str(tmp_path / "names.txt"), "--out", str(tmp_path / "out")]
    assert published.main(given) == 0
    assert torch.equal(load_file(tmp_path / "out" / "weights.safetensors")["head.patch_select"], ours.head.patch_select)
    (tmp_path / "names.txt").write_text("a\nb\n")
    assert published.main(given) == 1
    assert "2 class names; the file has 3" in capsys.readouterr().err


class Hostile:
    def __init__(self, mark: Path):
        self.mark = mark

    def __reduce__(self) -> tuple[object, ...]:
        return os.system, (f"touch {self.mark}",)


@pytest.mark.parametrize("old", [False, True])
def test_a_file_that_calls_something_is_refused_and_nothing_is_called(tmp_path: Path, old: bool) -> None:
    torch.save({"x": Hostile(tmp_path / "called")}, tmp_path / "bad.pth", _use_new_zipfile_serialization=not old)
    with pytest.raises(published.Refused, match=r"(posix|nt)\.system"):
        published.read(tmp_path / "bad.pth")
    assert not (tmp_path / "called").exists()


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("builtins", "eval"),
        ("builtins", "getattr"),
        ("torch", "load"),
        ("torch.hub", "load"),
        ("modelx", "Y"),
        ("subprocess", "Popen"),
    ],
)
def test_other_names_are_refused_by_name(tmp_path: Path, module: str, name: str) -> None:
    import io

    blob = pickle.PROTO + b"\x02" + pickle.GLOBAL + f"{module}\n{name}\n".encode() + pickle.STOP
    with pytest.raises(published.Refused, match=rf"{module}\.{name}"):
        published.RESTRICTED.load(io.BytesIO(blob))


@pytest.mark.parametrize("blob", [b"", b"not a file", b"PK\x03\x04" + b"\0" * 40, b"\x80\x02."])
def test_what_is_no_checkpoint_is_refused_in_a_sentence(tmp_path: Path, blob: bytes) -> None:
    (tmp_path / "x.pth").write_bytes(blob)
    with pytest.raises(published.Refused, match=r"no checkpoint|does not hold"):
        published.read(tmp_path / "x.pth")


def test_a_state_dict_and_another_network_are_refused(tmp_path: Path) -> None:
    torch.save({"a": torch.ones(2)}, tmp_path / "dict.pth")
    with pytest.raises(published.Refused, match="does not hold a module"):
        published.read(tmp_path / "dict.pth")
    torch.save(nn.Linear(2, 2), tmp_path / "linear.pth")
    with pytest.raises(published.Refused, match="no “prototype_vectors”"):
        published.read(tmp_path / "linear.pth")
