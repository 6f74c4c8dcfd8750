"""The tables of docs/measurements.md, from what the benchmarks print: `python -m fanlight.bench._table docs/measurements.md RUN.json ...`.

A benchmark's table stands between `<!-- NAME -->` and `<!-- /NAME -->` and is replaced as a whole; nobody writes a number by hand.
Without a run, every declared figure is "not yet measured". A benchmark whose results are no list of figures makes its own (`table`).
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fanlight.bench._figures import Declared, Figure, number

HEAD = "| figure | target | measured | spread | remark |\n|---|---|---|---|---|\n"
PENDING = "not yet measured"


def table(declared: Mapping[str, Declared], run: Mapping[str, Any] | None = None) -> str:
    """Markdown: one row per declared figure; above it when, where and with what it was measured."""
    found = {name: Figure.model_validate(run[name]) for name in declared if run and name in run}
    return (_about(run) if run else "") + HEAD + "".join(_row(d, found.get(name)) for name, d in declared.items())


def _row(declared: Declared, figure: Figure | None) -> str:
    cells = [declared.measures, declared.target]
    if figure is None:
        cells += [PENDING, "", ""]
    else:
        value = f"{number(figure.value)} {figure.unit}".strip()
        verdict = {True: "", False: " (missed)", None: ""}[figure.met]
        cells += [
            value + verdict,
            f"{figure.spread}, {figure.rounds} rounds" if figure.rounds > 1 else "",
            figure.remark,
        ]
    return f"| {' | '.join(cells)} |\n"


def _about(run: Mapping[str, Any]) -> str:
    m = run["machine"]
    where = f"{m['cpu']}, {m['cores']} cores, {m['memory']:.0f} GiB, {m['system']}, load {m['load']:g} at the start"
    packages = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
    options = ", ".join(f"{name} {value}" for name, value in run["options"].items() if value is not None)
    return f"{run['date']}. {where}. {packages}. Options: {options}.\n\n"


def replaced(text: str, name: str, made: str) -> str:
    """`text` with `made` between the marks of `name`."""
    found, count = re.subn(
        rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", lambda m: f"{m[1]}\n{made}\n{m[2]}", text, flags=re.DOTALL
    )
    if count != 1:
        raise ValueError(
            f"the document has {count} places for {name}; it needs <!-- {name} --> ... <!-- /{name} --> once"
        )
    return found


def main(document: Path, runs: list[Path]) -> None:
    text = document.read_text()
    for path in runs:
        run = json.loads(path.read_text())
        module = importlib.import_module(f"fanlight.bench.{run['benchmark']}")
        made = table(module.FIGURES, run) if hasattr(module, "FIGURES") else module.table(run)
        text = replaced(text, run["benchmark"], made)
    document.write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
