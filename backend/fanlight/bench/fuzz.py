"""What hostile requests do: generated from the schema, mutated from valid ones, or bytes; by strangers, an editor and the operator.

Every operation of the API, the pages' callbacks and their addresses, on a server of its own with some of everything in it. Counted are answers of 500
or above, requests without an answer within 30 s, tracebacks in answers, errors in the log that nobody foresaw, and processes that ended.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import re
import tempfile
import time
import urllib.parse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx

from fanlight.bench import _mutants as mutants
from fanlight.bench._attackers import PATIENCE, STREAM, Attacker, Seen
from fanlight.bench._figures import Declared, figures, passed
from fanlight.bench._machine import machine, today, versions
from fanlight.bench._processes import tree
from fanlight.bench._server import Server, fanlight
from fanlight.bench._stock import EDITOR, PASSWORD, Stock, stock
from fanlight.cli.output import say

UNFORESEEN = ("unexpected error", "Exception in ASGI application", "Task exception was never retrieved")
KINDS = ("schema", "mutants", "callbacks", "bytes")
FIGURES = {
    "requests": Declared(measures="Requests", at_least=10_000),
    "by_anonymous": Declared(measures="Of them by strangers"),
    "by_editor": Declared(measures="Of them by an editor"),
    "by_operator": Declared(measures="Of them by the operator"),
    "schema": Declared(measures="Generated from the schema"),
    "mutants": Declared(measures="Valid requests with something exchanged"),
    "callbacks": Declared(measures="Calls of the pages' callbacks, and addresses of pages"),
    "bytes": Declared(measures="Bytes that are nearly a request"),
    "operations": Declared(measures="Operations of the API that were asked"),
    "missed": Declared(measures="Operations that were not", at_most=0),
    "refused": Declared(measures="Answers of 400 to 499"),
    "granted": Declared(measures="Answers of 200 to 399"),
    "errors": Declared(measures="Answers of 500 or above", at_most=0),
    "hangs": Declared(measures="Requests without an answer within 30 s", at_most=0),
    "silences": Declared(measures="Well-formed requests whose connection was closed without an answer", at_most=0),
    "traces": Declared(measures="Answers that show a traceback or a path of the server", at_most=0),
    "logged": Declared(measures="Errors in the log of the server that nobody foresaw", at_most=0),
    "deaths": Declared(measures="Processes of the server that ended", at_most=0),
    "slowest": Declared(measures="Slowest answer", unit="s"),
    "seconds": Declared(measures="Duration", unit="s"),
}  # fmt: skip


def run(options: Sequence[str]) -> dict[str, Any]:
    """Options: --requests N (in all), --seed N. Needs schemathesis (fanlight[dev])."""
    chosen = _options(options)
    about: dict[str, Any] = {"benchmark": "fuzz", "date": today(), "machine": machine()}
    about |= {"versions": versions(("fanlight", "fastapi", "schemathesis", "hypothesis")), "options": vars(chosen)}
    seen, begun = Seen(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fanlight-fuzz-") as name:
        measured, remarks = _campaign(Path(name), chosen.requests, chosen.seed, seen)
    measured["seconds"] = [time.monotonic() - begun]
    filled = figures(FIGURES, measured)
    found = [*seen.errors, *seen.hangs, *seen.silences, *seen.traces, *remarks]
    return {
        **about,
        **filled,
        "statuses": dict(sorted(seen.statuses.items())),
        "found": found[:50],
        "passed": passed(filled),
    }


def _campaign(folder: Path, requests: int, seed: int, seen: Seen) -> tuple[dict[str, list[float]], list[str]]:
    rng = random.Random(seed)
    settings: dict[str, Any] = {
        "default_model": False,
        "examples": False,
        "trust": "request",
        "threads": 1,
        "queue_limit": 20_000,
    }
    with fanlight(folder, models=_model(folder), datasets=_pictures(folder), **settings) as server:
        with httpx.Client(base_url=server.url, headers=server.headers, timeout=120, trust_env=False) as operator:
            made = stock(operator)
            schema = operator.get("/api/v1/openapi.json").json()
            dependencies = operator.get("/_dash-dependencies").json()
        before = {pid: _command(pid) for pid in tree(server.pid)}
        everything = {f"{m.upper()} {p}" for p, some in schema["paths"].items() for m in some}
        for who, share in (("anonymous", 0.3), ("editor", 0.45), ("operator", 0.25)):
            budget = int(requests * share) + 1
            with contextlib.closing(_client(server, who)) as http:
                attacker = Attacker(who, http, int(server.url.rsplit(":", 1)[1]), seen)
                for kind, part in (("schema", 0.45), ("mutants", 0.3), ("callbacks", 0.1), ("bytes", 0.15)):
                    count = int(budget * part) + 1
                    if kind == "schema":
                        _generated(attacker, schema, made, count, rng)
                    elif kind == "mutants":
                        _exchanged(attacker, schema, made, count, rng)
                    elif kind == "callbacks":
                        _called(attacker, dependencies, made, count, rng)
                    else:
                        _shouted(attacker, schema, made, count, rng)
                    say(
                        f"{who}, {kind}: {seen.sent[f'{who} {kind}']} requests; {len(seen.errors)} errors, {len(seen.hangs)} hangs so far"
                    )
            server.until("/readyz")
        after = {pid: _command(pid) for pid in tree(server.pid)}
        gone = [command for pid, command in before.items() if after.get(pid) != command]
        log = server.log.read_text(errors="replace")
    told = [line for line in log.splitlines() if any(words in line for words in UNFORESEEN)]
    by = {
        who: sum(n for name, n in seen.sent.items() if name.startswith(who))
        for who in ("anonymous", "editor", "operator")
    }
    kinds = {k: sum(n for name, n in seen.sent.items() if name.endswith(k)) for k in KINDS}
    missed = everything - seen.operations
    measured: dict[str, list[float]] = {"requests": [seen.sent.total()], **{f"by_{w}": [n] for w, n in by.items()}}
    measured |= {k: [float(n)] for k, n in kinds.items()}
    measured |= {
        "operations": [len(everything & seen.operations)],
        "missed": [len(missed)],
    }
    measured["refused"] = [sum(n for s, n in seen.statuses.items() if 400 <= s < 500)]
    measured["granted"] = [sum(n for s, n in seen.statuses.items() if 200 <= s < 400)]
    measured |= {"errors": [len(seen.errors)], "hangs": [len(seen.hangs)], "silences": [len(seen.silences)]}
    measured |= {"traces": [len(seen.traces)], "logged": [len(told)], "deaths": [len(gone)], "slowest": [seen.slowest]}
    return measured, [*sorted(missed), *gone, *(t[:600] for t in told)]


# --- the four ways


def _generated(attacker: Attacker, schema: dict[str, Any], made: Stock, count: int, rng: random.Random) -> None:
    """From the schema and beside it, by schemathesis; half of the ids are those of something that is there."""
    import schemathesis
    from hypothesis import HealthCheck, Phase, given, seed, settings, strategies as st

    operations = [o.ok() for o in schemathesis.openapi.from_dict(schema).get_all_operations()]  # type: ignore[union-attr]
    for operation in operations:
        attacker.seen.operations.add(f"{operation.method.upper()} {operation.path}")

        @seed(rng.randrange(2**32))
        @given(case=operation.as_strategy(), real=st.sampled_from(made.known), swap=st.booleans())
        @settings(
            max_examples=-(-count // len(operations)), deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
        )  # fmt: skip
        def attack(case: Any, real: str, swap: bool) -> None:
            if swap:
                given_ = (case.path_parameters or {}).items()
                case.path_parameters = {k: real if isinstance(v, str) else v for k, v in given_}
            try:
                sent = case.as_transport_kwargs(base_url=str(attacker.http.base_url).rstrip("/"))
            except (ValueError, TypeError, KeyError):
                return
            data = sent.pop("data", None)
            sent["content"] = data if not sent.get("files") and not sent.get("json") else None
            kept = {k: sent[k] for k in ("params", "json", "content", "files") if sent.get(k) is not None}
            headers = {
                k: v for k, v in dict(sent.get("headers") or {}).items() if k.lower() not in ("authorization", "cookie")
            }
            attacker.send("schema", case.method, sent["url"], headers=headers, **kept)

        attack()


def _exchanged(attacker: Attacker, schema: dict[str, Any], made: Stock, count: int, rng: random.Random) -> None:
    """Valid requests of every operation with something exchanged: in the body, the address or the query."""
    operations = [(m.upper(), p, o) for p, some in schema["paths"].items() for m, o in some.items()]
    for n in range(count):
        method, path, operation = operations[n % len(operations)]
        body = made.bodies.get(f"{method} {path}")
        query = {q["name"]: str(rng.choice(mutants.HOSTILE))[:300] for q in operation.get("parameters", [])
                 if q["in"] == "query" and rng.random() < 0.3}  # fmt: skip
        more: dict[str, Any] = {"params": query} if query else {}
        if body is not None or (method != "GET" and rng.random() < 0.3):
            more["content"] = mutants.text(mutants.mutated(body if body is not None else {"id": "x"}, rng), rng)
            more["headers"] = {"content-type": "application/json"}
        attacker.send("mutants", method, mutants.address(path, made.known, rng), **more)


def _called(
    attacker: Attacker, dependencies: list[dict[str, Any]], made: Stock, count: int, rng: random.Random
) -> None:
    """Calls of the pages' callbacks whose every input comes from the attacker, and addresses of pages."""
    pages = (
        "/",
        "/e/{id}",
        "/e/{id}/words",
        "/models/{id}",
        "/data/{id}",
        "/sweeps/{id}",
        "/compare/{id}",
        "/settings",
        "/{id}",
        "/assets/{id}",
    )
    for _ in range(count):
        if not dependencies or rng.random() < 0.2:
            attacker.send(
                "callbacks", rng.choice(("GET", "HEAD", "POST")), mutants.address(rng.choice(pages), made.known, rng)
            )
            continue
        one = rng.choice(dependencies)

        def valued(found: dict[str, Any]) -> dict[str, Any]:
            value = rng.choice([*mutants.HOSTILE[:40], *made.known])
            return {"id": found["id"], "property": found["property"], "value": value}

        outputs = re.findall(r"([^.{}]+|\{[^}]*\})\.([\w-]+)", one["output"].strip("."))
        parts = [{"id": i, "property": p} for i, p in outputs]
        body = {
            "output": one["output"],
            "outputs": parts if one["output"].startswith("..") else next(iter(parts), None),
            "inputs": [valued(i) for i in one["inputs"]],
            "state": [valued(s) for s in one["state"]],
            "changedPropIds": [f"{i['id']}.{i['property']}" for i in one["inputs"][:1]],
        }
        said = mutants.mutated(body, rng) if rng.random() < 0.5 else body
        attacker.send("callbacks", "POST", "/_dash-update-component", content=mutants.text(said, rng),
                      headers={"content-type": "application/json"})  # fmt: skip


def _shouted(attacker: Attacker, schema: dict[str, Any], made: Stock, count: int, rng: random.Random) -> None:
    """Bytes that are nearly a request."""
    paths = [p for p in schema["paths"] if p != STREAM] + [
        "/",
        "/login",
        "/metrics",
        "*",
        "http://127.0.0.1/",
        "/s/{token}",
    ]
    known = {"host": f"127.0.0.1:{attacker.port}", "connection": "close"}
    known |= {k: v for k, v in attacker.http.headers.items() if k in ("authorization", "sec-fetch-site")}
    if cookies := "; ".join(f"{k}={v}" for k, v in attacker.http.cookies.items()):
        known["cookie"] = cookies
    for _ in range(count):
        attacker.shout("bytes", mutants.head(mutants.address(rng.choice(paths), made.known, rng), known, rng))


# --- the server


def _client(server: Server, who: str) -> httpx.Client:
    headers = {"operator": server.headers, "editor": {"sec-fetch-site": "same-origin"}}.get(who, {})
    http = httpx.Client(base_url=server.url, headers=headers, timeout=PATIENCE, trust_env=False)
    if who == "editor":
        http.post("/login", data={"name": EDITOR, "password": PASSWORD})
        if http.get("/api/v1/me").json().get("role") != "editor":
            raise RuntimeError("the editor of the benchmark could not log in")
    return http


def _command(pid: int) -> str:
    try:
        return urllib.parse.unquote(Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " "))[:200]
    except OSError:
        return ""


def _model(folder: Path) -> Path:
    from fanlight.bench.kill import TINY

    path = folder / "tiny.py"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(TINY.replace("        time.sleep(0.004)\n", ""))
    return path


def _pictures(folder: Path) -> str:
    from fanlight.bench._stock import noise

    place = folder / "pictures" / "one"
    place.mkdir(parents=True)
    for n in range(3):
        (place / f"{n}.png").write_bytes(noise(100 + n))
    return f"shelf={folder / 'pictures'}"


def _options(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fanlight bench fuzz --", description=__doc__)
    parser.add_argument("--requests", type=int, default=12_000, help="in all")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(given)
