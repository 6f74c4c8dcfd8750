"""Parameter JSON Schema -> a labelled form, and the form's values -> parameters. Pure functions; no method is known by name here.

The schema is pydantic's: `type` with its bounds, `enum` or `const`, `default`, `title`, `description`, optional values as `anyOf` with null, shared
enumerations as `$ref`. What a person leaves empty is left out, so that the server's own default holds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import dash_mantine_components as dmc
from dash import html
from dash.development.base_component import Component

Schema = Mapping[str, Any]


@dataclass(frozen=True)
class Field:
    """One parameter as a person meets it.

    Args:
        lo, hi: closed bounds, or None; an open bound of a whole number is turned into a closed one.
        lo_open, hi_open: True where the bound itself is not allowed (real numbers only).
        choices: allowed values of a choice, in order.
    """

    name: str
    kind: Literal["integer", "number", "choice", "switch", "text"]
    label: str
    help: str
    default: Any = None
    lo: float | None = None
    hi: float | None = None
    lo_open: bool = False
    hi_open: bool = False
    choices: tuple[Any, ...] = ()
    unit: str = ""

    @property
    def range(self) -> str:
        """The bounds in words: "2 to 1024", "above 0", "at most 1", or nothing."""
        lo, hi = self.lo, self.hi
        unit = f" {self.unit}" if self.unit else ""
        if lo is not None and hi is not None and not (self.lo_open or self.hi_open):
            return f"{lo:g} to {hi:g}{unit}"
        parts = []
        if lo is not None:
            parts.append(f"{'above' if self.lo_open else 'at least'} {lo:g}")
        if hi is not None:
            parts.append(f"{'below' if self.hi_open else 'at most'} {hi:g}")
        return ", ".join(parts) + unit if parts else ""

    @property
    def step(self) -> float:
        """A step that a person would choose: 1 for whole numbers, else a hundredth of the range rounded down to a power of ten."""
        if self.kind == "integer":
            return 1
        scale = (
            self.hi - self.lo
            if self.hi is not None and self.lo is not None and self.hi > self.lo
            else abs(self.default or 1.0)
        )
        return float(10.0 ** math.floor(math.log10(scale / 50)))


def fields(schema: Schema) -> list[Field]:
    """The parameters of a schema, in its order."""
    return [_field(name, _resolve(spec, schema)) for name, spec in schema.get("properties", {}).items()]


def _resolve(spec: Schema, root: Schema) -> dict[str, Any]:
    """`spec` with its reference, its single `allOf` and its optional `anyOf` folded in; what it says itself wins."""
    merged = dict(spec)
    inner: list[Schema] = []
    if "$ref" in merged:
        inner.append(root.get("$defs", {}).get(merged.pop("$ref").rsplit("/", 1)[-1], {}))
    inner += merged.pop("allOf", [])
    inner += [s for s in merged.pop("anyOf", []) if s.get("type") != "null"][:1]
    for other in inner:
        merged = {**_resolve(other, root), **merged}
    return merged


def _field(name: str, spec: Schema) -> Field:
    said = spec.get("type", "string")
    choices = tuple(spec["enum"]) if "enum" in spec else (spec["const"],) if "const" in spec else ()
    kind: Any = (
        "choice" if choices else {"integer": "integer", "number": "number", "boolean": "switch"}.get(said, "text")
    )
    lo, hi = spec.get("minimum"), spec.get("maximum")
    above, below = spec.get("exclusiveMinimum"), spec.get("exclusiveMaximum")
    whole = kind == "integer"
    return Field(
        name=name,
        kind=kind,
        label=spec.get("title") or name.replace("_", " ").capitalize(),
        help=spec.get("description", ""),
        default=spec.get("default"),
        lo=lo if above is None else above + 1 if whole else above,
        hi=hi if below is None else below - 1 if whole else below,
        lo_open=above is not None and not whole,
        hi_open=below is not None and not whole,
        choices=choices,
        unit=spec.get("unit", ""),
    )


def control_id(scope: str, field: Field) -> dict[str, str]:
    """The pattern-matching id of a control; `scope` is the form it stands in.

    A switch has a type of its own, because it holds `checked`, not `value`.
    """
    return {"type": "flag" if field.kind == "switch" else "param", "scope": scope, "name": field.name}


def form(schema: Schema, scope: str, values: Mapping[str, Any] | None = None) -> Component:
    """A labelled control per parameter, showing `values` where given and the default elsewhere."""
    known = fields(schema)
    if not known:
        return html.P("This method has no parameters.", className="quiet")
    return html.Div(
        [_control(f, control_id(scope, f), (values or {}).get(f.name, f.default)) for f in known], className="params"
    )


def _control(f: Field, id: dict[str, str], value: Any) -> Component:
    line = " · ".join(t for t in (f.help, f.range) if t)
    common = {"id": id, "label": f.label, "description": line, "size": "sm"}
    if f.kind == "switch":
        return dmc.Switch(**common, checked=bool(value))
    if f.kind == "choice":
        return dmc.Select(
            **common,
            data=[{"value": _spell(c), "label": _spell(c).replace("_", " ")} for c in f.choices],
            value=_spell(value),
            allowDeselect=False,
        )
    if f.kind == "text":
        return dmc.TextInput(**common, value="" if value is None else str(value))
    return dmc.NumberInput(
        **common,
        value="" if value is None else value,
        min=f.lo,
        max=f.hi,
        step=f.step,
        allowDecimal=f.kind == "number",
        clampBehavior="none",
        suffix=f" {f.unit}" if f.unit else "",
        inputProps={"inputMode": "decimal"},
    )


def _spell(value: Any) -> str:
    return "" if value is None else str(value)


def read(schema: Schema, values: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters from what the controls hold; empty ones and unknown names are left out.

    Bounds are not judged here: the server does, in a sentence, for every caller alike.
    """
    out: dict[str, Any] = {}
    for f in fields(schema):
        value = values.get(f.name)
        if value is None or value == "":
            continue
        out[f.name] = _typed(f, value)
    return out


def _typed(f: Field, value: Any) -> Any:
    if f.kind == "switch":
        return value in (True, "true", "True", "1")
    if f.kind == "choice":
        return next((c for c in f.choices if _spell(c) == str(value)), value)
    if f.kind in ("integer", "number"):
        try:
            number = float(value)
        except ValueError:
            return value
        return int(number) if f.kind == "integer" and number.is_integer() else number
    return value


def differs(schema: Schema, values: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of `values` that are not at their default: what an address or a line of text needs to say."""
    given = read(schema, values)
    return {f.name: given[f.name] for f in fields(schema) if f.name in given and given[f.name] != f.default}


def collect(ids: Sequence[Mapping[str, str]], values: Sequence[Any]) -> dict[str, dict[str, Any]]:
    """What an ALL callback received, by form: {scope: {name: value}}."""
    out: dict[str, dict[str, Any]] = {}
    for id, value in zip(ids, values, strict=True):
        out.setdefault(id["scope"], {})[id["name"]] = value
    return out
