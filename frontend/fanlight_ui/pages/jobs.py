"""Jobs: mine first; where each stands, how long it will take, what went wrong. Moves with the events of the stream."""

from __future__ import annotations

import asyncio
from typing import Any

import dash
from dash import ALL, Input, Output, ctx, dcc, html
from dash.development.base_component import Component
from dash.exceptions import PreventUpdate

from fanlight.client import calls
from fanlight.errors import Forbidden
from fanlight.wire import TERMINAL, Job, Training
from fanlight_ui import errors, session, sweeps, trainings
from fanlight_ui.views.numbers import seconds, when

dash.register_page(__name__, path="/jobs", title="Jobs · Fanlight")

CLOCK = 3000  # milliseconds between looks at a training
DONE = {"succeeded": "done", "failed": "failed", "cancelled": "cancelled", "expired": "expired: not finished in time"}


@errors.page
async def layout(**_address: Any) -> Component:
    head = html.Div(
        [html.H1("Jobs"), dcc.Link("Sweeps", href=session.href("/sweeps"), className="button end")], className="head"
    )
    jobs, learning = await asyncio.gather(listing(), learnt())
    going = html.Div(trainings.section(learning), id="trainings")
    clock = dcc.Interval(id="trainings-clock", interval=CLOCK, disabled=not any(t.state == "running" for t in learning))
    return html.Main([head, html.Div(jobs, id="jobs"), going, clock], className="page narrow")


async def learnt() -> list[Training]:
    """Trainings beside the server; none for who does not run it."""
    try:
        return await session.ask(calls.trainings())
    except Forbidden:
        return []


async def listing() -> list[Component]:
    page, swept = await asyncio.gather(session.ask(calls.jobs()), session.ask(calls.sweeps(limit=12)))
    going = [sweeps.entry(s) for s in swept.items if s.state in sweeps.ACTIVE]
    bulk = [html.Section([html.H2("Sweeps"), html.Ul(going, className="jobs")])] if going else []
    if not page.items and not going:
        return [html.P("Nothing is being computed, and nothing was lately.", className="blank")]
    open_, over = [j for j in page.items if j.state not in TERMINAL], [j for j in page.items if j.state in TERMINAL]
    groups = [
        ("Mine", [j for j in open_ if j.mine]),
        ("Of others", [j for j in open_ if not j.mine]),
        ("Finished", sorted(over, key=lambda j: (not j.mine, -(j.finished or 0)))),
    ]
    return bulk + [
        html.Section([html.H2(title), html.Ul([row(j) for j in jobs], className="jobs")])
        for title, jobs in groups
        if jobs
    ]


def row(j: Job) -> Component:
    """One job. Its bar and words are moved by `assets/jobs.js` while it runs."""
    link = dcc.Link(j.title or f"Explanation {j.explanation}", href=session.href(f"/e/{j.explanation}"))
    head: list[Any] = [html.Strong(link)]
    if j.kind != "explain":
        head.append(html.Span("trust", className="tag"))
    if j.mine and j.state not in TERMINAL:
        head.append(
            html.Button(
                ["Cancel", html.Span(f" {j.title}", className="sr")],
                id={"type": "cancel", "job": j.id},
                className="button small",
            )
        )
    parts: list[Any] = [html.Div(head, className="row")]
    if j.state not in TERMINAL:
        bar = html.Progress(
            id={"type": "job-bar", "job": j.id}, value=str(round(j.progress, 4)), max="1", **{"aria-label": "Progress"}
        )
        parts.append(bar)
    parts.append(html.P(state_words(j), id={"type": "job-words", "job": j.id}, className="quiet num"))
    if j.error is not None:
        parts.append(html.P(" ".join(filter(None, errors.said(j.error))), className="wrong"))
    return html.Li(parts, className=f"card pad job {j.state}")


def state_words(j: Job, now: float | None = None) -> str:
    """Where a job stands, in words."""
    if j.state in TERMINAL:
        took = f" in {seconds(j.finished - j.started)}" if j.state == "succeeded" and j.started and j.finished else ""
        return f"{DONE[j.state]}{took} · {when(j.finished or j.created, now)}"
    left = "" if j.seconds_left is None else f"about {seconds(j.seconds_left)} left"
    if j.state == "queued":
        place = "next in the queue" if not j.place else f"{j.place} before it in the queue"
        return " · ".join(filter(None, [place, left]))
    return " · ".join(filter(None, [j.message or "running", f"{100 * j.progress:.0f} %", left]))


@dash.callback(Output("jobs", "children"), Input("transitions", "data"), prevent_initial_call=True)
async def refresh(_event: dict[str, Any] | None) -> list[Component]:
    return await listing()


@dash.callback(
    Output("jobs", "children", allow_duplicate=True),
    Input({"type": "cancel", "job": ALL}, "n_clicks"),
    prevent_initial_call=True,
)
async def cancel(clicks: list[int | None]) -> list[Component]:
    if not any(clicks) or not ctx.triggered_id:
        raise PreventUpdate
    await session.ask(calls.cancel(ctx.triggered_id["job"]))
    errors.toast("Cancelled.")
    return await listing()


@dash.callback(Output("trainings", "children"), Input("trainings-clock", "n_intervals"), prevent_initial_call=True)
async def look(_count: int | None) -> list[Component]:
    return trainings.section(await learnt())
