"""The benchmark of the gallery on a small list: every kind of question is asked, and counts are compared with a plain count."""

from __future__ import annotations

import random

from fanlight.bench import _million, gallery


def test_records_are_the_same_every_time_and_uneven() -> None:
    one, two = (list(_million.records(400, seed=3)) for _ in range(2))
    assert one == two
    classes = [m.record["top_class"] for m in one]
    assert classes.count(_million.CLASSES[0]) > classes.count(_million.CLASSES[50])
    assert {m.record["outcome"] for m in one} == {"right", "wrong"}


def test_every_kind_of_question_is_one_that_the_gallery_takes() -> None:
    draw = random.Random(0)
    allowed = {*gallery.COLUMNS, "q", "tag", "sort"}
    for kind in gallery.QUESTIONS:
        assert all(set(gallery.question(kind, draw)) <= allowed for _ in range(20))


def test_a_thousand_rows_are_counted_right() -> None:
    measured = gallery.run(["--rows", "1000", "--rounds", "1", "--requests", "3"])
    assert measured["sqlite_wrong"].value == 0 and measured["sqlite_checked"].value > 100
    assert measured["sqlite_p95"].unit == "ms"
