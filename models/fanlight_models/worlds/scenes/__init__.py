"""Scenes: two objects and a prompt, a world in which every word's information about every picture is known. Nothing here imports torch.

`world(name)` says which words go with which pictures; `draw(world, seed, index)` makes a picture with prompt and masks; `bayes.Bayes` is the
optimal denoiser of it (imports torch); `measures` says how near a map comes to a mask or to the truth.
"""

from __future__ import annotations

from fanlight_models.worlds.scenes.drawing import (
    COLOURS as COLOURS,
    SHAPES as SHAPES,
    SIDES as SIDES,
    SIGMA as SIGMA,
    Scene as Scene,
    draw as draw,
    halves as halves,
)
from fanlight_models.worlds.scenes.variants import WORLDS as WORLDS, Row as Row, World as World, world as world

VERSION = 1
"""Goes up when a scene draws other pixels or has another prompt than before."""
