"""An explanation as text to paste: the same request in Python, for curl, and what to cite."""

from __future__ import annotations

import json
import shlex
from typing import Any

from fanlight import wire


def asked(record: wire.Explanation) -> dict[str, Any]:
    """The request that computes this explanation again."""
    target = record.target or {}
    body = {
        "model": record.model,
        "input": record.input,
        "explainer": record.explainer,
        "params": record.params,
        "seed": record.seed,
    }
    if "class" in target:
        body["target"] = target["class"]
    elif "minus" in target:
        body["target"] = {"minus": target["minus"]}
    elif "similar_to" in target:
        body["target"] = {"similar_to": target["similar_to"]}
    return body


def python(record: wire.Explanation) -> str:
    """With the client; the address and the token come from FANLIGHT_URL and FANLIGHT_TOKEN."""
    if record.edits:
        call = f"record = fan.intervene({record.parent!r}, {record.edits!r})"
    else:
        given = ",\n".join(f"    {name}={value!r}" for name, value in asked(record).items())
        call = f"record = fan.explain(\n{given},\n)"
    return f"from fanlight import Client\n\nfan = Client()\n{call}\nvalues = fan.artifact(record.artifacts[0].digest).arrays"


def curl(record: wire.Explanation) -> str:
    path, body = (
        ("interventions", {"explanation": record.parent, "edits": record.edits})
        if record.edits
        else ("explanations", asked(record))
    )
    return (
        f'curl "$FANLIGHT_URL/api/v1/{path}?wait=2" \\\n  -H "Authorization: Bearer $FANLIGHT_TOKEN" -H "Content-Type: application/json" \\\n'
        f"  -d {shlex.quote(json.dumps(body))}"
    )


def bibtex(info: wire.ExplainerInfo | None) -> str:
    return info.paper.bibtex if info else ""
