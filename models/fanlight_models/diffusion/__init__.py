"""Which words of a prompt put what where: information of words about a picture, from the denoising errors of a text-to-image model. Plain torch.

`plan.plan` says what to ask, `measure.measure` asks it in steps, `Readings.contrast` and `atoms.decompose` turn the answers into maps in nats;
`folders` reads one of diffusers, `generate` draws and edits. docs/diffusion.md describes all of it. Importing this package imports torch, and
neither diffusers nor transformers.
"""

from __future__ import annotations

from fanlight_models.diffusion.atoms import Atoms as Atoms, Decomposition as Decomposition, decompose as decompose
from fanlight_models.diffusion.channel import Law as Law, Sampling as Sampling
from fanlight_models.diffusion.measure import Step as Step, finished as finished, measure as measure, start as start
from fanlight_models.diffusion.plan import Plan as Plan, plan as plan
from fanlight_models.diffusion.protocol import Attending as Attending, Denoiser as Denoiser
from fanlight_models.diffusion.readings import Estimate as Estimate, NotFinite as NotFinite, Readings as Readings
from fanlight_models.diffusion.words import (
    BadPrompt as BadPrompt,
    Conditioning as Conditioning,
    Prompt as Prompt,
    Word as Word,
)
