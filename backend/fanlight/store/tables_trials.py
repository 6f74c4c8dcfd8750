"""The tables of trials: an intervention tried on every explanation of a sweep. Loaded with `fanlight.store`."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, ForeignKey, Index, Integer, String, Table, Text

from fanlight.store.tables import Json, metadata

trial = Table(
    "trial",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("workspace", String(64), nullable=False),
    Column("principal", String(64), nullable=False),
    Column("sweep", String(32), ForeignKey("sweep.id", ondelete="CASCADE"), nullable=False),
    # canonical, and in words
    Column("edits", Json, nullable=False),
    Column("about", Text, nullable=False),
    Column("narrowed", Json, nullable=False),
    # running | done | cancelled | failed
    Column("state", String(16), nullable=False),
    Column("problem", Text),
    Column("total", Integer, nullable=False),
    # which server works on it, until when it says so, and when it had its last turn
    Column("owner", String(64)),
    Column("lease_until", BigInteger),
    Column("turn", BigInteger, nullable=False),
    Column("spent", BigInteger, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("finished", BigInteger),
    Index("ix_trial_sweep", "sweep", "created"),
    Index("ix_trial_state", "state", "turn"),
)

# The explanations of a trial, frozen, and what became of their predictions.
trial_item = Table(
    "trial_item",
    metadata,
    Column("trial", String(32), ForeignKey("trial.id", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("name", String(300), nullable=False),
    Column("label", String(200)),
    Column("input", String(64), nullable=False),
    Column("explanation", String(32), nullable=False),
    # waiting | done | failed | cancelled
    Column("state", String(16), nullable=False),
    Column("reason", Text),
    Column("before", String(200)),
    Column("before_probability", Float),
    Column("after", String(200)),
    Column("after_probability", Float),
    # corrected | spoiled | other (another class, as right or wrong as before) | same
    Column("move", String(16)),
    Index("ix_trial_item_state", "trial", "state", "position"),
    Index("ix_trial_item_move", "trial", "move", "position"),
)
