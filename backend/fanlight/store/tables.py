"""The tables. Facts about inputs, explanations and jobs; arrays live in blobs, by digest.

Times are UTC in integer microseconds. Every row has a workspace, and a principal where somebody made it.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Float, ForeignKey, Index, Integer, String, Table, Text, text

from fanlight.store import people as people  # further tables of the same metadata
from fanlight.store.columns import (
    Json as Json,
    Micros,
    Sequence,
    metadata as metadata,
    who as _who,
    workspace_of as _workspace,
)
from fanlight.store.words import Words

input_ = Table(
    "input",
    metadata,
    Column("workspace", String(64), primary_key=True),
    Column("id", String(64), primary_key=True),
    Column("principal", String(64), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("width", Integer, nullable=False),
    Column("height", Integer, nullable=False),
    Column("name", String(300), nullable=False),
    Column("notes", Json, nullable=False),
    Column("blob", String(64), nullable=False),
    Column("thumbnail", String(64), nullable=False),
    Column("original", String(64), nullable=False),
    Column("created", Micros, nullable=False),
)

model = Table(
    "model",
    metadata,
    Column("workspace", String(64), primary_key=True),
    Column("id", String(128), primary_key=True),
    Column("digest", String(64), nullable=False),
    Column("name", String(200), nullable=False),
    Column("task", String(64), nullable=False),
    Column("source", Json, nullable=False),
    Column("info", Json, nullable=False),
    Column("created", Micros, nullable=False),
)

dataset = Table(
    "dataset",
    metadata,
    Column("workspace", String(64), primary_key=True),
    Column("id", String(128), primary_key=True),
    Column("version", Integer, nullable=False),
    Column("name", String(200), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("count", Integer, nullable=False),
    Column("unreadable", Integer, nullable=False),
    Column("terms", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("created", Micros, nullable=False),
)

sample = Table(
    "sample",
    metadata,
    Column("workspace", String(64), primary_key=True),
    Column("dataset", String(128), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("name", String(300), nullable=False),
    Column("label", String(200)),
    Column("input", String(64), nullable=False),
    Index("ix_sample_input", "workspace", "input"),
)

prediction = Table(
    "prediction",
    metadata,
    Column("workspace", String(64), primary_key=True),
    Column("model_digest", String(64), primary_key=True),
    Column("input", String(64), primary_key=True),
    Column("top", Json, nullable=False),
    Column("created", Micros, nullable=False),
)

LIVE_STATES = ("queued", "running", "succeeded")

explanation = Table(
    "explanation",
    metadata,
    Column("id", String(32), primary_key=True),
    *_who(),
    # The content key; unique among the living, so that equal requests share one computation.
    Column("key", String(64), nullable=False),
    Column("live", Boolean, nullable=False),
    Column("state", String(16), nullable=False),
    Column("job", String(32)),
    Column("parent", String(32)),
    Column("edits", Json, nullable=False),
    Column("model", String(128), nullable=False),
    Column("model_digest", String(64), nullable=False),
    Column("input", String(64), nullable=False),
    Column("input_name", String(300), nullable=False),
    Column("dataset", String(128)),
    Column("label", String(200)),
    Column("outcome", String(8)),
    Column("explainer", String(64), nullable=False),
    Column("explainer_version", String(32), nullable=False),
    Column("family", String(32), nullable=False),
    Column("params", Json, nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("numerics", String(64), nullable=False),
    Column("target", Json),
    Column("target_name", String(420), nullable=False),
    Column("prediction", Json, nullable=False),
    Column("top_class", String(200)),
    Column("top_probability", Float),
    Column("artifacts", Json, nullable=False),
    Column("summary", Text, nullable=False),
    Column("trust", Json, nullable=False),
    # above | below | pending | unavailable: the trust record in one word, for filters
    Column("trust_class", String(16), nullable=False),
    Column("faithfulness", Float),
    Column("provenance", Json, nullable=False),
    Column("error", Json),
    Column("title", String(200), nullable=False),
    Column("note", Text, nullable=False),
    Column("superseded_by", String(32)),
    Column("recomputes", String(32)),
    Column("verified", Json),
    Column("created", Micros, nullable=False),
    Column("finished", Micros),
    Index(
        "uq_explanation_key", "workspace", "key", unique=True, sqlite_where=text("live"), postgresql_where=text("live")
    ),
    Index("ix_explanation_created", "workspace", "created", "id"),
    Index("ix_explanation_input", "workspace", "input"),
    Index("ix_explanation_parent", "parent"),
)

# What the gallery lists: derived from `explanation` by service/listing.py, narrow, in the order in which it came. `words` are searched through
# the virtual table `listing_words` on SQLite and through the index `ix_listing_words` on PostgreSQL, both made by migration 0003.
listing = Table(
    "listing",
    metadata,
    Column("n", Sequence, primary_key=True, autoincrement=True),
    Column("explanation", String(32), nullable=False, unique=True),
    _workspace(),
    Column("shown", Boolean, nullable=False),
    Column("family", String(32), nullable=False),
    Column("explainer", String(64), nullable=False),
    Column("model", String(128), nullable=False),
    Column("class", String(200)),
    Column("outcome", String(8)),
    Column("trust", String(16), nullable=False),
    Column("dataset", String(128)),
    Column("tags", Text),
    Column("faithfulness", Float, nullable=False),
    Column("probability", Float, nullable=False),
    Column("words", Words, nullable=False),
    Index("ix_listing_n", "workspace", "n"),
    Index("ix_listing_faithfulness", "workspace", "faithfulness", "n"),
    Index("ix_listing_probability", "workspace", "probability", "n"),
    Index("ix_listing_trust", "workspace", "trust", "faithfulness", "n"),
)

tag = Table(
    "tag",
    metadata,
    Column("explanation", String(32), ForeignKey("explanation.id", ondelete="CASCADE"), primary_key=True),
    Column("tag", String(50), primary_key=True),
    _workspace(),
    Index("ix_tag_tag", "workspace", "tag"),
)

FREE = "state = 'queued' AND owner IS NULL AND NOT cancel_requested"
"""A job that nobody works on and somebody waits for, as the index of them says it; PostgreSQL and SQLite use it only for these very words."""

job = Table(
    "job",
    metadata,
    Column("id", String(32), primary_key=True),
    *_who(),
    Column("explanation", String(32), ForeignKey("explanation.id", ondelete="CASCADE"), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("work", Json, nullable=False),
    Column("priority", Integer, nullable=False),
    Column("cost", Integer, nullable=False),
    Column("state", String(16), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("crashes", Integer, nullable=False, server_default="0"),
    Column("owner", String(64)),
    Column("lease_until", Micros),
    Column("deadline", Micros),
    Column("progress", Float, nullable=False),
    Column("message", String(200), nullable=False),
    Column("cancel_requested", Boolean, nullable=False),
    Column("error", Json),
    Column("created", Micros, nullable=False),
    Column("started", Micros),
    Column("finished", Micros),
    Index("ix_job_open", "state", "priority", "created"),
    Index(
        "ix_job_free",
        "kind",
        "priority",
        "workspace",
        "principal",
        "created",
        "cost",
        sqlite_where=text(FREE),
        postgresql_where=text(FREE),
    ),
    Index("ix_job_explanation", "explanation"),
    Index("ix_job_recent", "workspace", "created"),
)

# Whose turn it is: `claims` keeps here what each workspace (principal "") and each person in it may still take of a class, or owes.
lane = Table(
    "lane",
    metadata,
    Column("kind", String(16), primary_key=True),
    Column("priority", Integer, primary_key=True),
    Column("space", String(64), primary_key=True),
    Column("principal", String(64), primary_key=True),
    Column("deficit", Float, nullable=False),
    Column("allowance", Float, nullable=False),
    Column("turn", BigInteger, nullable=False),
)

watcher = Table(
    "watcher",
    metadata,
    Column("job", String(32), ForeignKey("job.id", ondelete="CASCADE"), primary_key=True),
    Column("principal", String(64), primary_key=True),
)

floor = Table(
    "floor",
    metadata,
    Column("workspace", String(64), primary_key=True),
    Column("key", String(64), primary_key=True),
    Column("record", Json, nullable=False),
    Column("created", Micros, nullable=False),
)

event = Table(
    "event",
    metadata,
    Column("id", Sequence, primary_key=True, autoincrement=True),
    _workspace(),
    Column("data", Json, nullable=False),
    Column("created", Micros, nullable=False),
)

share = Table(
    "share",
    metadata,
    Column("id", String(32), primary_key=True),
    *_who(),
    Column("token_hash", String(64), nullable=False, unique=True),
    Column("title", String(300), nullable=False),
    Column("snapshot", Json, nullable=False),
    Column("created", Micros, nullable=False),
    Column("expires", Micros, nullable=False),
    Column("revoked", Micros),
    Column("views", Integer, nullable=False),
    Index("ix_share_owner", "workspace", "principal", "created"),
)

share_item = Table(
    "share_item",
    metadata,
    Column("share", String(32), ForeignKey("share.id", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("explanation", String(32), nullable=False),
    Index("ix_share_item_explanation", "explanation"),
)

# Which blobs a record needs: readable only through a row that the visitor may see, kept while a row names them.
reference = Table(
    "reference",
    metadata,
    Column("workspace", String(64), primary_key=True),
    Column("digest", String(64), primary_key=True),
    Column("owner", String(80), primary_key=True),
    Index("ix_reference_owner", "owner"),
)

audit = Table(
    "audit",
    metadata,
    Column("id", Sequence, primary_key=True, autoincrement=True),
    *_who(),
    Column("action", String(64), nullable=False),
    Column("subject", String(128), nullable=False),
    Column("detail", Json, nullable=False),
    Column("created", Micros, nullable=False),
    Index("ix_audit_recent", "workspace", "id"),
)

# Keys of programs. Only a hash of the secret is kept.
api_key = Table(
    "api_key", metadata, Column("id", String(32), primary_key=True), *_who(),
    Column("name", String(100), nullable=False),
    Column("secret_hash", String(64), nullable=False),
    Column("scopes", Json, nullable=False),
    Column("created", Micros, nullable=False), Column("expires", Micros), Column("revoked", Micros), Column("used", Micros),
    Index("ix_api_key_recent", "workspace", "created"),
)  # fmt: skip

counter = Table(
    "counter",
    metadata,
    Column("workspace", String(64), primary_key=True),
    Column("name", String(64), primary_key=True),
    Column("value", BigInteger, nullable=False),
)

# One method over many pictures. `spent` is the time in which it ran, up to `since`, when it was last set going.
sweep = Table(
    "sweep",
    metadata,
    Column("id", String(32), primary_key=True),
    *_who(),
    Column("name", String(200), nullable=False),
    Column("spec", Json, nullable=False),
    Column("model", String(128), nullable=False),
    Column("model_digest", String(64), nullable=False),
    Column("explainer", String(64), nullable=False),
    Column("dataset", String(128)),
    Column("state", String(16), nullable=False),
    # why it was paused by the server itself
    Column("problem", Text),
    Column("total", Integer, nullable=False),
    Column("spent", Micros, nullable=False),
    Column("since", Micros),
    Column("created", Micros, nullable=False),
    Column("finished", Micros),
    Index("ix_sweep_recent", "workspace", "created"),
    Index("ix_sweep_state", "state"),
)

# What a sweep was asked for, frozen: a data set may change meanwhile.
sweep_item = Table(
    "sweep_item",
    metadata,
    Column("sweep", String(32), ForeignKey("sweep.id", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("name", String(300), nullable=False),
    Column("label", String(200)),
    Column("input", String(64)),
    # waiting | submitted | measuring | succeeded | failed | skipped | cancelled
    Column("state", String(16), nullable=False),
    Column("explanation", String(32)),
    Column("reused", Boolean, nullable=False),
    Column("reason", Text),
    Column("finished", Micros),
    Index("ix_sweep_item_state", "sweep", "state", "position"),
    Index("ix_sweep_item_explanation", "explanation"),
)

# A question to the gallery under a name. A deleted one is kept for a while, so that it can be brought back.
saved_view = Table(
    "saved_view",
    metadata,
    Column("id", String(32), primary_key=True),
    *_who(),
    Column("name", String(200), nullable=False),
    Column("query", Json, nullable=False),
    Column("created", Micros, nullable=False),
    Column("deleted", Micros),
    Index("ix_saved_view_recent", "workspace", "created"),
)

# Files of a data set that are no pictures, and why.
unreadable = Table(
    "unreadable",
    metadata,
    Column("workspace", String(64), primary_key=True),
    Column("dataset", String(128), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("name", String(300), nullable=False),
    Column("label", String(200)),
    Column("reason", Text, nullable=False),
)

# What the doctor found out about a model, the last time.
examination = Table(
    "examination",
    metadata,
    Column("workspace", String(64), primary_key=True),
    Column("model_digest", String(64), primary_key=True),
    Column("principal", String(64), nullable=False),
    # what `fanlight doctor MODEL --json` says
    Column("report", Json, nullable=False),
    Column("finished", Micros, nullable=False),
)
