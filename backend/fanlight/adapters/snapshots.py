"""Models of diffusers by their name on the Hugging Face hub, `owner/name` or `owner/name@revision`: fetched once into that library's cache and pinned
to a commit. Of a repository only configurations, tokenizers and safetensors are fetched; where it is fetched from, with which token and into which
folder is huggingface_hub's own configuration (HF_ENDPOINT, HF_TOKEN, HF_HOME, HF_HUB_OFFLINE)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from fanlight.adapters import hub
from fanlight.adapters.sources import hub_name

PARTS = ("scheduler", "tokenizer*", "text_encoder*", "unet", "transformer", "vae")
WANTED = ["model_index.json", "fanlight.json", *(f"{part}/*.{end}" for part in PARTS for end in ("json", "txt", "safetensors"))]  # fmt: skip
UNWANTED = ["*.fp16.*", "*.bf16.*", "*.non_ema.*", "*.ema.*"]
"""Further copies of the same weights."""
COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class Snapshot:
    """A repository at a commit: its name, that commit, and the folder where it lies."""

    name: str
    commit: str
    folder: Path

    @property
    def pinned(self) -> str:
        return f"{self.name}@{self.commit}"


def fetched(text: str) -> Snapshot:
    """The snapshot that `owner/name[@revision]` means; without a revision that of the main branch. Without a network the one that was fetched
    before. Errors: BadModel with what was tried and what to do."""
    hub.required("huggingface_hub", "diffusion")
    import huggingface_hub
    from huggingface_hub import constants, errors

    found = hub_name(text)
    if found is None:
        raise hub.BadModel(
            f"“{text}” is no name on the hub.", given=text, allowed=["owner/name", "owner/name@revision"]
        )
    name, revision = found
    at = f" at “{revision}”" if revision else ""
    try:
        folder = Path(
            huggingface_hub.snapshot_download(
                name, revision=revision, allow_patterns=WANTED, ignore_patterns=UNWANTED, library_name="fanlight"
            )
        )
    except errors.GatedRepoError as e:
        raise hub.BadModel(
            f"“{name}” is given only to those who accepted its terms.",
            given=text,
            hint="Accept them on its page on the hub, and start the server with HF_TOKEN, a token of that account.",
        ) from e
    except errors.RepositoryNotFoundError as e:
        raise hub.BadModel(
            f"There is neither a folder “{text}” here, nor is there a “{name}” on {constants.ENDPOINT}, or it is private.",
            given=text,
            hint="Name a folder, or a repository as owner/name; for a private one start the server with HF_TOKEN.",
        ) from e
    except errors.RevisionNotFoundError as e:
        raise hub.BadModel(
            f"“{name}” has no revision “{revision}”.", given=text, hint="Name a branch, a tag or a commit."
        ) from e
    except (errors.LocalEntryNotFoundError, errors.HfHubHTTPError, OSError, ValueError) as e:
        tried = "switched off by HF_HUB_OFFLINE" if constants.HF_HUB_OFFLINE else f"{constants.ENDPOINT} was asked"
        said = str(e.__cause__ or e).strip().partition("\n")[0][:200]
        raise hub.BadModel(
            f"“{name}”{at} could not be fetched: the network was tried ({tried}), and the cache {constants.HF_HUB_CACHE} holds no whole copy. {said}",
            code="not_fetched",
            given=text,
            hint="Fetch it with `hf download` where there is a network, and bring the cache here (HF_HOME) or name its folder: diffusers:/path.",
        ) from e
    if not COMMIT.fullmatch(folder.name):
        raise hub.BadModel(f"“{name}”{at} was fetched to no commit but to “{folder.name}”.", given=text)
    return Snapshot(name, folder.name, folder)
