"""The field guide: a world of birds made of parts, in which every explanation can be marked right or wrong. Nothing here imports torch.

`scene(seed, index)` is a bird in its surroundings; `draw(scene)` its picture with masks; `split("train")` the scenes of a data set; `posterior`
what can be known of hidden concepts; `truth` what a model owes to each part; `measures` and `landings` how near an explanation comes to it.
"""

from __future__ import annotations

from fanlight_models.worlds.fieldguide.drawing import SIZE as SIZE, Drawing as Drawing, Plate as Plate, draw as draw
from fanlight_models.worlds.fieldguide.scenes import BACKGROUNDS as BACKGROUNDS, Scene as Scene, scene as scene
from fanlight_models.worlds.fieldguide.splits import (
    SPLITS as SPLITS,
    Arrays as Arrays,
    arrays as arrays,
    split as split,
)
from fanlight_models.worlds.fieldguide.table import (
    CONCEPTS as CONCEPTS,
    COUPLED as COUPLED,
    FAMILIES as FAMILIES,
    FAMILY_OF as FAMILY_OF,
    GROUPS as GROUPS,
    PARTS as PARTS,
    SPECIES as SPECIES,
)

VERSION = 1
"""Goes up when a scene draws other pixels or has other labels than before."""
