"""The jobs of `fanlight bench attribution`: each method on a ViT-tiny, by the explainer of the product and by Captum, as it comes and tuned.

Random weights from a seed: what a pass costs does not depend on them. One picture, one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from captum.attr import FeatureAblation, IntegratedGradients, KernelShap, LayerGradCam, Saliency

from fanlight.adapters import hub
from fanlight.adapters.image_classifier import Preprocessing, TorchImageClassifier
from fanlight.bench import _explained, _pictures
from fanlight.decoding import decode
from fanlight.explainers import maps
from fanlight.explainers.base import Item
from fanlight.explainers.registry import find

NETWORK = "vit_tiny_patch16_224"  # 12 blocks, d 192, 3 heads, patches of 16 px, 5.7 million parameters
STEPS, SQUARE, SAMPLES = 50, 32, 512
OURS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "saliency": ("saliency", {}),
    "grad_cam": ("grad-cam", {}),
    "ig50": ("integrated-gradients", {"steps": STEPS, "tolerance": 0, "baseline": "grey"}),
    "ablation49": ("occlusion", {"window": SQUARE, "stride": SQUARE, "baseline": "grey"}),
    "shap512": ("kernel-shap", {"patch": SQUARE, "samples": SAMPLES, "baseline": "grey"}),
}
"""Job -> explainer and its parameters."""
SIDES: Mapping[str, tuple[str, ...]] = {
    "saliency": ("ours", "captum"),
    "grad_cam": ("ours", "captum"),
    "ig50": ("ours", "captum", "captum_5", "captum_10"),
    "ablation49": ("ours", "captum", "captum_16"),
    "shap512": ("ours", "captum", "captum_16"),
}
"""Job -> who does it; a number is Captum's internal_batch_size or perturbations_per_eval."""


class Bench(NamedTuple):
    model: Any
    item: Item


def prepared() -> Bench:
    hub.required("timm")
    import timm

    torch.set_num_threads(1)
    torch.manual_seed(0)
    net = timm.create_model(NETWORK, pretrained=False)
    scaled = Preprocessing((224, 224), mean=(127.5,) * 3, std=(127.5,) * 3)
    names = [f"class {i}" for i in range(1000)]
    model = TorchImageClassifier(net, classes=names, preprocessing=scaled, features_at="auto", name=NETWORK)
    _, blob = next(_pictures.photographs())
    pixels = decode(blob, max_bytes=1 << 26, max_pixels=1 << 26).pixels
    return Bench(model, _explained.item(model, pixels))


def forward(bench: Bench) -> Callable[[], object]:
    """The unit of all costs: one picture, no gradients."""
    x = bench.item.x[None]

    def act() -> object:
        with torch.inference_mode():
            return bench.model.logits(x)

    return act


def job(bench: Bench, name: str, side: str) -> Callable[[], Any]:
    """What does a job once. Args: name: of OURS; side: of SIDES."""
    if side == "ours":
        explainer, given = OURS[name]
        method = find(explainer)
        params = method.Params(**given)
        return lambda: _explained.explained(method, params, bench.model, bench.item)
    many = int(side.partition("_")[2] or 0)
    return {"saliency": _saliency, "grad_cam": _grad_cam, "ig50": _ig, "ablation49": _ablation, "shap512": _shap}[name](
        bench, many
    )


def _saliency(bench: Bench, _many: int) -> Callable[[], Any]:
    captum, target = Saliency(bench.model.net), bench.item.target.index
    return lambda: captum.attribute(bench.item.x[None].clone().requires_grad_(), target).amax(1)


def _grad_cam(bench: Bench, _many: int) -> Callable[[], Any]:
    net: Any = bench.model.net
    captum = LayerGradCam(net, net.get_submodule(bench.model.features_at))
    # the weights are frozen: without a gradient at the input nothing would reach the layer
    return lambda: captum.attribute(
        bench.item.x[None].clone().requires_grad_(), bench.item.target.index, relu_attributions=True
    )


def _ig(bench: Bench, many: int) -> Callable[[], Any]:
    captum = IntegratedGradients(bench.model.net)
    x, grey = bench.item.x[None], maps.baseline(bench.model, bench.item, "grey")[None]
    given = {"internal_batch_size": many} if many else {}
    return lambda: captum.attribute(x, grey, bench.item.target.index, n_steps=STEPS, **given)


def _ablation(bench: Bench, many: int) -> Callable[[], Any]:
    captum, given = FeatureAblation(bench.model.net), _hiding(bench)
    return lambda: _quiet(captum.attribute, **given, perturbations_per_eval=many or 1)


def _shap(bench: Bench, many: int) -> Callable[[], Any]:
    captum, given = KernelShap(bench.model.net), _hiding(bench)
    return lambda: _quiet(captum.attribute, **given, n_samples=SAMPLES, perturbations_per_eval=many or 1)


def _hiding(bench: Bench) -> dict[str, Any]:
    """What is hidden and by what, as Captum is told it."""
    label = torch.from_numpy(maps.squares(bench.model.size, SQUARE)).long()
    grey = maps.baseline(bench.model, bench.item, "grey")[None]
    return {
        "inputs": bench.item.x[None],
        "baselines": grey,
        "target": bench.item.target.index,
        "feature_mask": label[None, None],
    }


def _quiet(attribute: Callable[..., Any], **given: Any) -> Any:
    """Without gradients, which these methods of Captum do not need."""
    with torch.no_grad():
        return attribute(**given)
