"""What people build instead: Gradio around Captum, in one file, with the same network and the same preparation of pictures.

The network runs in PyTorch's usual memory layout, as it does where nobody thought of it; `--channels-last` gives it Fanlight's.
`python -m fanlight.bench._gradio_app serve --port N` serves it; `... tune` prints the fastest batch sizes of this machine as JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import gradio as gr
import numpy as np
import torch
from captum.attr import IntegratedGradients, Occlusion, Saliency
from PIL import Image

from fanlight.adapters import loader
from fanlight.bundles import DEFAULT, folder

METHODS = ("Saliency", "Integrated Gradients", "Occlusion")
STEPS, WINDOW = 50, 8
SIZES = (1, 2, 4, 8, 16, 32)

device = "cuda" if torch.cuda.is_available() else "cpu"
model = loader.load(loader.source(folder() / DEFAULT), device)
grey = model.colour((127.5, 127.5, 127.5))[None]
network: Any = model.net.to(memory_format=torch.contiguous_format)
if "--channels-last" in sys.argv:
    network.to(memory_format=torch.channels_last)


def attributions(
    method: str, x: torch.Tensor, ig_batch: int, occlusion_batch: int, steps: int = STEPS, window: int = WINDOW
) -> tuple[torch.Tensor, int]:
    """(1, 3, H, W) -> attributions of the same shape, and the class that they explain."""
    with torch.no_grad():
        target = int(network(x).argmax())
    if method == "Saliency":
        return Saliency(network).attribute(x.requires_grad_(), target), target
    if method == "Integrated Gradients":
        found = IntegratedGradients(network).attribute(
            x, grey.expand_as(x), target, n_steps=steps, internal_batch_size=ig_batch
        )
        return found, target
    with torch.no_grad():
        found = Occlusion(network).attribute(
            x,
            sliding_window_shapes=(3, window, window),
            strides=(3, window, window),
            baselines=grey.expand_as(x),
            target=target,
            perturbations_per_eval=occlusion_batch,
        )
    return found, target


def overlay(picture: np.ndarray[Any, Any], found: torch.Tensor) -> Image.Image:
    """The magnitude of the attributions in red over the picture."""
    size = found.abs().amax(1)[0].detach().cpu().numpy()
    strength = (255 * size / max(float(size.max()), 1e-12)).astype(np.uint8)
    red = Image.merge("RGB", [Image.fromarray(strength), *[Image.new("L", strength.shape[::-1])] * 2])
    return Image.blend(Image.fromarray(model.pixels(picture)), red, 0.6)


def app(ig_batch: int, occlusion_batch: int) -> Any:
    def explain(picture: np.ndarray[Any, Any], method: str) -> tuple[Image.Image, str]:
        found, target = attributions(method, model.prepare(picture)[None], ig_batch, occlusion_batch)
        return overlay(picture, found), model.classes[target]

    with gr.Blocks(title="Captum", analytics_enabled=False) as blocks:
        gr.Markdown("# Captum")
        with gr.Row():
            with gr.Column():
                picture = gr.Image(type="numpy", label="Picture", elem_id="picture")
                method = gr.Radio(list(METHODS), value=METHODS[0], label="Method")
                button = gr.Button("Explain", elem_id="explain")
            with gr.Column():
                result = gr.Image(label="Map", elem_id="map", interactive=False)
                name = gr.Textbox(label="Class", elem_id="class")
        button.click(explain, [picture, method], [result, name])
    return blocks


def tune() -> dict[str, int]:
    """The fastest batch sizes of Integrated Gradients and of occlusion, tried on fewer steps and larger windows."""
    x = torch.zeros(1, 3, *model.size, device=device) + grey
    return {
        "ig_batch": _fastest(lambda size: attributions("Integrated Gradients", x, size, 1, steps=32)),
        "occlusion_batch": _fastest(lambda size: attributions("Occlusion", x, 1, size, window=32)),
    }


def _fastest(act: Callable[[int], Any]) -> int:
    took: dict[int, float] = {}
    act(SIZES[0])
    for size in SIZES:
        begin = time.perf_counter()
        act(size)
        took[size] = time.perf_counter() - begin
    return min(took, key=lambda size: took[size])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("verb", choices=("serve", "tune"))
    parser.add_argument("--port", type=int)
    parser.add_argument("--ig-batch", type=int, default=8)
    parser.add_argument("--occlusion-batch", type=int, default=8)
    parser.add_argument("--channels-last", action="store_true")
    given = parser.parse_args()
    if given.verb == "tune":
        sys.stdout.write(json.dumps(tune()) + "\n")
    else:
        app(given.ig_batch, given.occlusion_batch).launch(
            server_name="127.0.0.1", server_port=given.port, quiet=True, share=False
        )
