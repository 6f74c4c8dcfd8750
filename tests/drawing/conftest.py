"""A real photograph, and a map computed plainly from it."""

from __future__ import annotations

import numpy as np
import pytest
import skimage.data
from drawing_samples import BOX, image_map

from fanlight.artifact import Artifact


@pytest.fixture
def cat() -> np.ndarray:
    return skimage.data.chelsea()


@pytest.fixture
def edges(cat: np.ndarray) -> Artifact:
    """Local contrast above its mean, on a grid of 75 x 75 over the middle of the photograph."""
    grey = cat[:, 75:375].mean(axis=2)
    contrast = np.hypot(*np.gradient(grey)).reshape(75, 4, 75, 4).mean(axis=(1, 3))
    return image_map(contrast - contrast.mean(), signed=True, box=BOX)
