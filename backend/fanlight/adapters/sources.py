"""How an operator names a model, and what that means: a source, JSON-able. Needs no torch.

    [name=]folder | [name=]file.py | [name=]KIND:WHAT[?option=value&...]

KIND is torchvision, timm, transformers or diffusers, WHAT the name of an architecture or a folder; of diffusers also a name on the hub,
owner/name[@revision]. Options are those of `OPTIONS`; a model of diffusers has none.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

from fanlight.errors import BadRequest

HUBS = ("torchvision", "timm", "transformers", "diffusers")
FOLDERS = ("transformers", "diffusers")
"""Those that name a folder."""
OPTIONS = {
    "weights": "DEFAULT, the name of published weights, or a .safetensors file",
    "classes": "a text file with one name per output",
    "features": "the module whose grid of features Grad-CAM reads",
    "head": "single-label, multi-label or regression",
    "unit": "of the values of a regression",
}
PATHS = ("classes",)
_PART = r"[A-Za-z0-9][\w.-]*"
_HUB_NAME = re.compile(rf"({_PART}/{_PART})(?:@({_PART}(?:/{_PART})*))?")

Source = dict[str, str]


def named(value: str | Path) -> tuple[str, Source]:
    """(name, source) that a text of the operator means; the name is the given one, else that of the file or model."""
    text = str(value)
    head, equals, rest = text.partition("=")
    if equals and re.fullmatch(r"[A-Za-z0-9][\w.-]*", head) and not Path(text).exists():
        return head, source(rest)
    found = source(text)
    if hub_name(found.get("diffusers", "")):
        return found["diffusers"].partition("@")[0].rpartition("/")[2], found
    what = Path(text if "file" in found or "bundle" in found else next(iter(found.values())))
    return (what.stem if "file" in found else what.name), found


def source(value: str | Path) -> Source:
    """The source that a text means: a folder is a bundle, a transformers model or a pipeline of diffusers, a .py file is a model of your own,
    KIND:WHAT is one of a library."""
    text = str(value)
    kind, colon, rest = text.partition(":")
    if colon and kind in HUBS:
        return _hub(text, kind, rest)
    path = Path(value).expanduser().resolve()
    if path.is_dir():
        if (path / "model_index.json").is_file() and not (path / "bundle.toml").exists():
            return {"diffusers": str(path)}
        published = (path / "config.json").is_file() and not (path / "bundle.toml").exists()
        return {"transformers" if published else "bundle": str(path)}
    if path.suffix == ".py" and path.is_file():
        return {"file": str(path)}
    raise BadRequest(
        f"“{value}” is neither a bundle folder nor a Python file, nor a model of a library.",
        code="bad_source",
        given=text,
        allowed=["a folder with bundle.toml", "a .py file", *(f"{h}:..." for h in HUBS)],
        hint="A bundle holds bundle.toml and weights.safetensors; a Python file ends in .py and defines load().",
    )


def hub_name(text: str) -> tuple[str, str | None] | None:
    """(owner/name, revision) of a name on the hub; None where it is none, or a path that is here."""
    found = _HUB_NAME.fullmatch(text)
    return None if found is None or Path(text).exists() else (found[1], found[2])


def _hub(text: str, kind: str, rest: str) -> Source:
    what, _, query = rest.partition("?")
    if not what:
        raise BadRequest(f"“{text}” names no model of {kind}.", code="bad_source", given=text)
    local = kind in FOLDERS and not (kind == "diffusers" and hub_name(what))
    found = {kind: str(Path(what).expanduser().resolve()) if local else what}
    options = [] if kind == "diffusers" else [k for k in OPTIONS if k != "weights" or kind != "transformers"]
    for pair in filter(None, query.split("&")):
        key, equals, given = pair.partition("=")
        if key not in options or not equals or key in found:
            raise BadRequest(
                f"“{pair}” is no option of a model of {kind}.",
                code="bad_source",
                given=pair,
                allowed=options,
                hint=f"{kind}:{what}?option=value&option=value",
            )
        found[key] = unquote(given)
    for key in ("classes", "weights"):
        if key in found and (key in PATHS or found[key].endswith(".safetensors") or "/" in found[key]):
            found[key] = str(Path(found[key]).expanduser().resolve())
    return found
