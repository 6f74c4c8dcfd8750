"""A picture that a person uploads is predicted while they look at it; a program's is not."""

from __future__ import annotations

import time
from typing import Any

from api_rig import TOKEN, Api, noise, png
from fastapi.testclient import TestClient
from sqlalchemy import select

from fanlight.store.tables import prediction


def foreseen(api: Api, seconds: float) -> list[Any]:
    """The stored predictions, as soon as there are some."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        rows = api.http.app.state.context.db.read(lambda c: list(c.execute(select(prediction))))
        if rows:
            return rows
        time.sleep(0.02)
    return []


def upload(client: TestClient, blob: bytes) -> str:
    answer = client.post("/api/v1/inputs", files={"file": ("a.png", blob)}, headers={"Sec-Fetch-Site": "same-origin"})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def test_an_upload_of_a_person_is_predicted_before_it_is_asked_for(api: Api) -> None:
    person = TestClient(api.http.app)
    person.get(f"/?token={TOKEN}", follow_redirects=False)
    picture = upload(person, noise(1))
    (row,) = foreseen(api, 30)
    assert row.input == picture
    record = api.explain(input=picture)
    assert record["prediction"] == row.top and record["target"] == {"class": row.top[0]["index"]}


def test_an_upload_of_a_program_is_not(api: Api) -> None:
    upload(api.http, noise(2))
    assert foreseen(api, 1.0) == []


def test_a_picture_that_the_model_fails_on_costs_nobody_anything(api: Api) -> None:
    person = TestClient(api.http.app)
    person.get(f"/?token={TOKEN}", follow_redirects=False)
    upload(person, png((0, 255, 0)))  # the model answers NaN
    assert foreseen(api, 1.0) == []
    assert api.explain(input=upload(person, noise(3)))["state"] == "succeeded"
