"""Concept bottlenecks: networks that say what they see before they say what it is, so that a person can correct them. Plain torch, no server.

`build(config)` makes a model, `training.train` trains it, `read` and `intervene` (`protocol`) ask it; docs/concepts.md describes all of it.
Importing this package imports torch.
"""

from __future__ import annotations

from fanlight_models.concepts.answers import Answers as Answers, BadAnswer as BadAnswer, named as named
from fanlight_models.concepts.bundle import build as build, read as read, write as write
from fanlight_models.concepts.protocol import ConceptModel as ConceptModel, Outcome as Outcome, Reading as Reading
from fanlight_models.concepts.strategies import STRATEGIES as STRATEGIES, Strategy as Strategy
