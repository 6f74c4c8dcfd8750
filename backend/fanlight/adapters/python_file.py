"""Your own model in one Python file: a function `load()` that returns an adapter. See models/examples/colours.py.

The file is code and runs as such, with the rights of the server: only an operator names one (FANLIGHT_MODELS), never
a visitor.
"""

from __future__ import annotations

import ast
import sys
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import TYPE_CHECKING

from fanlight.errors import BadRequest

if TYPE_CHECKING:
    import torch

    from fanlight.adapters.image_classifier import TorchImageClassifier


class BadModelFile(BadRequest):
    code = "bad_model_file"


def source(path: Path) -> str:
    """The text of the file, or BadModelFile where it is missing or no Python."""
    try:
        text = path.read_text(encoding="utf-8")
        ast.parse(text, filename=path.name)
    except OSError as e:
        raise BadModelFile(f"The file “{path}” cannot be read: {e.strerror}.", given=str(path)) from e
    except (SyntaxError, UnicodeDecodeError, ValueError) as e:
        raise BadModelFile(f"“{path.name}” is not valid Python: {e}.", given=str(path)) from e
    return text


def heading(text: str) -> str:
    """The first line of the file's docstring: what the model is, for a list."""
    return (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]


def load(path: Path, device: torch.device | str = "cpu") -> TorchImageClassifier:
    """Runs the file and calls its `load()`; its text becomes part of the model's digest, modules that it imports do
    not."""
    from fanlight.adapters.image_classifier import TorchImageClassifier

    text = source(path)
    name = f"fanlight_model_{path.stem}_{sha256(str(path.resolve()).encode()).hexdigest()[:8]}"
    spec = spec_from_loader(name, loader=None, origin=str(path))
    assert spec is not None  # a name always has a spec
    module = module_from_spec(spec)
    module.__file__ = str(path)
    sys.modules[name] = module  # classes of the file look their module up
    try:
        exec(compile(text, str(path), "exec"), module.__dict__)
        make = getattr(module, "load", None)
        model = make() if callable(make) else None
        if isinstance(model, TorchImageClassifier):
            model.net.to(device)
    except (Exception, SystemExit) as e:
        line = _line(e, path)
        raise BadModelFile(
            f"“{path.name}” failed{f' in line {line}' if line else ''}: {type(e).__name__}: {e}",
            given=str(path),
            hint=getattr(e, "hint", None),
        ) from e
    if not callable(make):
        raise BadModelFile(
            f"“{path.name}” has no function load().",
            given=str(path),
            hint="Define load() and return a TorchImageClassifier.",
        )
    if not isinstance(model, TorchImageClassifier):
        given = type(model).__name__
        raise BadModelFile(
            f"load() of “{path.name}” returned {given}; it must return a TorchImageClassifier.", given=given
        )
    model.code = text + model.code
    model.name = model.name or path.stem
    model.description = model.description or heading(text)
    return model


def _line(error: BaseException, path: Path) -> int | None:
    """The deepest line of the file that the error came through."""
    found, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            found = trace.tb_lineno
        trace = trace.tb_next
    return found
