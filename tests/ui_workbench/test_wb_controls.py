"""Parameter schema -> form -> parameters, for any pydantic model."""

from __future__ import annotations

from typing import Any, Literal

import dash_mantine_components as dmc
import pytest
from pydantic import BaseModel, Field
from wire_methods import INFOS

from fanlight_ui import controls


class Everything(BaseModel):
    count: int = Field(8, ge=2, lt=65, description="Steps, a count.")
    share: float = Field(0.5, gt=0, le=1, title="Share kept", description="A fraction.")
    kind: Literal["grey", "black"] = "grey"
    size: Literal[1, 2, 4] = 2
    exact: bool = False
    limit: int | None = Field(None, ge=1)
    only: Literal["this"] = "this"
    label: str = "x"


SCHEMA = Everything.model_json_schema()


def held(form: Any) -> dict[str, Any]:
    """What the controls of a form hold, as the browser would send it."""
    found = {}
    for c in form.children:
        found[c.id["name"]] = c.checked if isinstance(c, dmc.Switch) else c.value
    return found


@pytest.mark.parametrize("schema", [SCHEMA, *(i.params for i in INFOS)], ids=lambda s: s["title"])
def test_an_untouched_form_reads_as_the_defaults(schema: dict[str, Any]) -> None:
    read = controls.read(schema, held(controls.form(schema, "it")))
    assert read == {f.name: f.default for f in controls.fields(schema) if f.default is not None}
    assert controls.differs(schema, read) == {}


def test_values_that_were_set_are_shown_and_read_with_their_types() -> None:
    given = {
        "count": 64,
        "share": 0.25,
        "kind": "black",
        "size": 4,
        "exact": True,
        "limit": 3,
        "only": "this",
        "label": "y",
    }
    form = controls.form(SCHEMA, "it", given)
    assert controls.read(SCHEMA, held(form)) == given
    assert Everything.model_validate(controls.read(SCHEMA, held(form))).model_dump() == given


def test_bounds_become_closed_for_whole_numbers_and_are_said_in_words() -> None:
    fields = {f.name: f for f in controls.fields(SCHEMA)}
    assert (fields["count"].lo, fields["count"].hi, fields["count"].range) == (2, 64, "2 to 64")
    assert fields["share"].range == "above 0, at most 1"
    assert fields["limit"].range == "at least 1"
    assert fields["count"].step == 1 and fields["share"].step == pytest.approx(0.01)


def test_each_control_is_labelled_and_says_its_range() -> None:
    by_name = {c.id["name"]: c for c in controls.form(SCHEMA, "it").children}
    assert by_name["share"].label == "Share kept"
    assert by_name["count"].description == "Steps, a count. · 2 to 64"
    assert (by_name["count"].min, by_name["count"].max) == (2, 64)
    assert [o["value"] for o in by_name["size"].data] == ["1", "2", "4"]


def test_a_switch_has_an_id_of_its_own_kind_because_it_holds_checked() -> None:
    by_name = {c.id["name"]: c.id["type"] for c in controls.form(SCHEMA, "it").children}
    assert by_name["exact"] == "flag" and by_name["count"] == "param"


def test_empty_and_unknown_values_are_left_out_and_bounds_are_left_to_the_server() -> None:
    assert controls.read(SCHEMA, {"count": "", "limit": None, "nothing": 1, "share": 7}) == {"share": 7.0}
    assert controls.read(SCHEMA, {"count": "many"}) == {"count": "many"}


def test_shared_enumerations_are_followed() -> None:
    schema = {
        "properties": {"a": {"allOf": [{"$ref": "#/$defs/E"}], "default": 2}},
        "$defs": {"E": {"enum": [1, 2], "type": "integer"}},
    }
    assert controls.fields(schema)[0].choices == (1, 2)
    assert controls.read(schema, {"a": "1"}) == {"a": 1}


def test_a_method_without_parameters_says_so() -> None:
    assert "no parameters" in controls.form({"properties": {}}, "it").children


def test_values_of_several_forms_are_told_apart() -> None:
    ids = [{"type": "param", "scope": s, "name": n} for s, n in (("a", "x"), ("b", "x"), ("a", "y"))]
    assert controls.collect(ids, [1, 2, 3]) == {"a": {"x": 1, "y": 3}, "b": {"x": 2}}
