"""Deletion and the untrained network against Quantus, where it is installed (`pip install 'fanlight[oracle]'`)."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from fanlight.comparison import plane
from fanlight.explainers import maps
from fanlight.explainers.attribution.saliency import Saliency
from fanlight.quality import randomisation, ranks, trust, untrained
from support.explaining import Context, conv_net, explained, finish, item
from support.subjects import subject

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what it warns of while it is imported is its own affair
    quantus = pytest.importorskip("quantus", reason="Quantus is not installed: pip install 'fanlight[oracle]'")

pytestmark = pytest.mark.filterwarnings("ignore")
SIDE = 112  # 49 patches


def test_our_deletion_is_pixel_flipping_patch_by_patch() -> None:
    model = conv_net(2, side=SIDE)
    one = item(model, 3)
    label = maps.squares((SIDE, SIDE), trust.PATCH)
    value = np.random.default_rng(0).permutation(49).astype(np.float32)[label]
    artifact = maps.image_map(one, torch.from_numpy(value), unit="logit", signed=False)
    curves = finish(trust.run(model, one, [artifact], None, Context())).curves
    f_x, f_b = curves.meta["f_x"], curves.meta["f_baseline"]
    ours = curves.arrays["y"][1] * abs(f_x - f_b) + f_b

    metric = quantus.PixelFlipping(
        features_in_step=trust.PATCH**2, perturb_baseline=0.0, normalise=False, abs=False, disable_warnings=True
    )
    grey_is_zero = float(model.colour((127.5,) * 3).abs().max())
    assert grey_is_zero == 0
    (theirs,) = metric(
        model=model.net, x_batch=one.x[None].numpy(), y_batch=np.array([one.target.index]),
        a_batch=value[None, None], softmax=False, device="cpu",
    )  # fmt: skip
    assert len(theirs) == 3 * 49, "the three channels of a patch are three of its steps"
    at = trust.counts(49)
    np.testing.assert_allclose(
        ours[1:], np.asarray(theirs)[[3 * n - 1 for n in at[1:]]], atol=1e-4 * np.abs(theirs).max()
    )


def saliency(model: Any, inputs: Any, targets: Any, **_: Any) -> np.ndarray[Any, Any]:
    """Our method, for theirs to call: (B, 1, H, W)."""
    rig, found = conv_net(0, side=SIDE), []
    rig.net.load_state_dict(model.state_dict())
    for x, target in zip(inputs, targets, strict=True):
        one = replace(item(rig), x=torch.as_tensor(x), target=type(item(rig).target)(int(target)))
        found.append(plane(explained(Saliency, rig, one)[0])[None])
    return np.stack(found)


def mprt(model: Any, one: Any, seed: int) -> dict[str, float]:
    metric = quantus.MPRT(
        similarity_func=quantus.similarity_func.correlation_spearman, layer_order="top_down", seed=seed,
        normalise=False, abs=False, disable_warnings=True, display_progressbar=False,
    )  # fmt: skip
    found = metric(
        model=model.net, x_batch=one.x[None].numpy(), y_batch=np.array([one.target.index]),
        a_batch=None, explain_func=saliency, device="cpu",
    )  # fmt: skip
    return {name: float(scores[0]) for name, scores in found.items() if name != "original"}


def test_with_equal_weights_the_likeness_of_maps_is_theirs_at_every_depth() -> None:
    model = conv_net(1, side=SIDE)
    one = item(model, 2)
    stored = plane(explained(Saliency, model, one)[0])
    theirs = mprt(model, one, 7)
    wrapped = quantus.helpers.model.pytorch_model.PyTorchModel(model.net, channel_first=True)
    assert [name for name, _ in wrapped.get_random_layer_generator("top_down", 7)] == list(theirs)
    for name, net in wrapped.get_random_layer_generator("top_down", 7):
        other = saliency(net, one.x[None].numpy(), [one.target.index])[0, 0]
        assert ranks.alike(stored.ravel(), other.ravel()) == pytest.approx(theirs[name], abs=1e-9), name


def test_our_top_layer_with_their_seed_is_theirs() -> None:
    model = conv_net(1, side=SIDE)
    one = item(model, 2)
    of = subject(model, Saliency, one)
    twin = untrained.Copy(model)
    finish(twin.redraw(1, 1, one.x, 0.0, ""))
    artifact = explained(Saliency, twin.network, replace(one))[0]
    ours = ranks.alike(of.value.ravel(), plane(artifact).ravel())
    theirs = mprt(model, one, (1 << 16) - 1)  # they add one to it
    assert ours == pytest.approx(next(iter(theirs.values())), abs=1e-9)
    assert randomisation.fine(of.value).shape == (SIDE, SIDE)
