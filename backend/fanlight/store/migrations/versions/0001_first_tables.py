"""first tables."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

Json = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
Sequence = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("id", Sequence, autoincrement=True, nullable=False),
        sa.Column("workspace", sa.String(length=64), nullable=False),
        sa.Column("principal", sa.String(length=64), nullable=False),
        sa.Column("action", sa.String(length=64), nullable=False),
        sa.Column("subject", sa.String(length=128), nullable=False),
        sa.Column("detail", Json, nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
    )
    op.create_table(
        "counter",
        sa.Column("workspace", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("value", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("workspace", "name", name=op.f("pk_counter")),
    )
    op.create_table(
        "dataset",
        sa.Column("workspace", sa.String(length=64), nullable=False),
        sa.Column("id", sa.String(length=128), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("unreadable", sa.Integer(), nullable=False),
        sa.Column("terms", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("workspace", "id", name=op.f("pk_dataset")),
    )
    op.create_table(
        "event",
        sa.Column("id", Sequence, autoincrement=True, nullable=False),
        sa.Column("workspace", sa.String(length=64), nullable=False),
        sa.Column("data", Json, nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_event")),
    )
    op.create_table(
        "explanation",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("workspace", sa.String(length=64), nullable=False),
        sa.Column("principal", sa.String(length=64), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("live", sa.Boolean(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("job", sa.String(length=32), nullable=True),
        sa.Column("parent", sa.String(length=32), nullable=True),
        sa.Column("edits", Json, nullable=False),
        sa.Column("model", sa.String(length=128), nullable=False),
        sa.Column("model_digest", sa.String(length=64), nullable=False),
        sa.Column("input", sa.String(length=64), nullable=False),
        sa.Column("input_name", sa.String(length=300), nullable=False),
        sa.Column("dataset", sa.String(length=128), nullable=True),
        sa.Column("label", sa.String(length=200), nullable=True),
        sa.Column("outcome", sa.String(length=8), nullable=True),
        sa.Column("explainer", sa.String(length=64), nullable=False),
        sa.Column("explainer_version", sa.String(length=32), nullable=False),
        sa.Column("family", sa.String(length=32), nullable=False),
        sa.Column("params", Json, nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("numerics", sa.String(length=64), nullable=False),
        sa.Column("target", Json, nullable=True),
        sa.Column("target_name", sa.String(length=420), nullable=False),
        sa.Column("prediction", Json, nullable=False),
        sa.Column("top_class", sa.String(length=200), nullable=True),
        sa.Column("top_probability", sa.Float(), nullable=True),
        sa.Column("artifacts", Json, nullable=False),
        sa.Column("summary", sa.Text(), nullable=False),
        sa.Column("trust", Json, nullable=False),
        sa.Column("trust_class", sa.String(length=16), nullable=False),
        sa.Column("faithfulness", sa.Float(), nullable=True),
        sa.Column("provenance", Json, nullable=False),
        sa.Column("error", Json, nullable=True),
        sa.Column("title", sa.String(length=200), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("search", sa.Text(), nullable=False),
        sa.Column("superseded_by", sa.String(length=32), nullable=True),
        sa.Column("recomputes", sa.String(length=32), nullable=True),
        sa.Column("verified", Json, nullable=True),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("finished", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_explanation")),
    )
    with op.batch_alter_table("explanation", schema=None) as batch_op:
        batch_op.create_index("ix_explanation_created", ["workspace", "created", "id"], unique=False)
        batch_op.create_index("ix_explanation_explainer", ["workspace", "explainer", "created"], unique=False)
        batch_op.create_index("ix_explanation_family", ["workspace", "family", "created"], unique=False)
        batch_op.create_index("ix_explanation_input", ["workspace", "input"], unique=False)
        batch_op.create_index("ix_explanation_model", ["workspace", "model", "created"], unique=False)
        batch_op.create_index("ix_explanation_parent", ["parent"], unique=False)
        batch_op.create_index("ix_explanation_top_class", ["workspace", "top_class", "created"], unique=False)
        batch_op.create_index("ix_explanation_trust", ["workspace", "trust_class", "created"], unique=False)
        batch_op.create_index(
            "uq_explanation_key",
            ["workspace", "key"],
            unique=True,
            sqlite_where=sa.text("live"),
            postgresql_where=sa.text("live"),
        )

    op.create_table(
        "floor",
        sa.Column("workspace", sa.String(length=64), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("record", Json, nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("workspace", "key", name=op.f("pk_floor")),
    )
    op.create_table(
        "input",
        sa.Column("workspace", sa.String(length=64), nullable=False),
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("principal", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("width", sa.Integer(), nullable=False),
        sa.Column("height", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=300), nullable=False),
        sa.Column("notes", Json, nullable=False),
        sa.Column("blob", sa.String(length=64), nullable=False),
        sa.Column("thumbnail", sa.String(length=64), nullable=False),
        sa.Column("original", sa.String(length=64), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("workspace", "id", name=op.f("pk_input")),
    )
    op.create_table(
        "model",
        sa.Column("workspace", sa.String(length=64), nullable=False),
        sa.Column("id", sa.String(length=128), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("task", sa.String(length=64), nullable=False),
        sa.Column("source", Json, nullable=False),
        sa.Column("info", Json, nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("workspace", "id", name=op.f("pk_model")),
    )
    op.create_table(
        "prediction",
        sa.Column("workspace", sa.String(length=64), nullable=False),
        sa.Column("model_digest", sa.String(length=64), nullable=False),
        sa.Column("input", sa.String(length=64), nullable=False),
        sa.Column("top", Json, nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("workspace", "model_digest", "input", name=op.f("pk_prediction")),
    )
    op.create_table(
        "reference",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("owner", sa.String(length=80), nullable=False),
        sa.Column("workspace", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("digest", "owner", name=op.f("pk_reference")),
    )
    with op.batch_alter_table("reference", schema=None) as batch_op:
        batch_op.create_index("ix_reference_owner", ["owner"], unique=False)

    op.create_table(
        "sample",
        sa.Column("workspace", sa.String(length=64), nullable=False),
        sa.Column("dataset", sa.String(length=128), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=300), nullable=False),
        sa.Column("label", sa.String(length=200), nullable=True),
        sa.Column("input", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("workspace", "dataset", "position", name=op.f("pk_sample")),
    )
    with op.batch_alter_table("sample", schema=None) as batch_op:
        batch_op.create_index("ix_sample_input", ["workspace", "input"], unique=False)

    op.create_table(
        "share",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("workspace", sa.String(length=64), nullable=False),
        sa.Column("principal", sa.String(length=64), nullable=False),
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("title", sa.String(length=300), nullable=False),
        sa.Column("snapshot", Json, nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("expires", sa.BigInteger(), nullable=False),
        sa.Column("revoked", sa.BigInteger(), nullable=True),
        sa.Column("views", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_share")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_share_token_hash")),
    )
    with op.batch_alter_table("share", schema=None) as batch_op:
        batch_op.create_index("ix_share_owner", ["workspace", "principal", "created"], unique=False)

    op.create_table(
        "job",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("workspace", sa.String(length=64), nullable=False),
        sa.Column("principal", sa.String(length=64), nullable=False),
        sa.Column("explanation", sa.String(length=32), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("work", Json, nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("cost", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("owner", sa.String(length=64), nullable=True),
        sa.Column("lease_until", sa.BigInteger(), nullable=True),
        sa.Column("deadline", sa.BigInteger(), nullable=True),
        sa.Column("progress", sa.Float(), nullable=False),
        sa.Column("message", sa.String(length=200), nullable=False),
        sa.Column("cancel_requested", sa.Boolean(), nullable=False),
        sa.Column("error", Json, nullable=True),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("started", sa.BigInteger(), nullable=True),
        sa.Column("finished", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["explanation"], ["explanation.id"], name=op.f("fk_job_explanation"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_job")),
    )
    with op.batch_alter_table("job", schema=None) as batch_op:
        batch_op.create_index("ix_job_explanation", ["explanation"], unique=False)
        batch_op.create_index("ix_job_open", ["state", "priority", "created"], unique=False)
        batch_op.create_index("ix_job_recent", ["workspace", "created"], unique=False)

    op.create_table(
        "share_item",
        sa.Column("share", sa.String(length=32), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("explanation", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(["share"], ["share.id"], name=op.f("fk_share_item_share"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("share", "position", name=op.f("pk_share_item")),
    )
    with op.batch_alter_table("share_item", schema=None) as batch_op:
        batch_op.create_index("ix_share_item_explanation", ["explanation"], unique=False)

    op.create_table(
        "tag",
        sa.Column("explanation", sa.String(length=32), nullable=False),
        sa.Column("tag", sa.String(length=50), nullable=False),
        sa.Column("workspace", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(
            ["explanation"], ["explanation.id"], name=op.f("fk_tag_explanation"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("explanation", "tag", name=op.f("pk_tag")),
    )
    with op.batch_alter_table("tag", schema=None) as batch_op:
        batch_op.create_index("ix_tag_tag", ["workspace", "tag"], unique=False)

    op.create_table(
        "watcher",
        sa.Column("job", sa.String(length=32), nullable=False),
        sa.Column("principal", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(["job"], ["job.id"], name=op.f("fk_watcher_job"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job", "principal", name=op.f("pk_watcher")),
    )


def downgrade() -> None:
    op.drop_table("watcher")
    with op.batch_alter_table("tag", schema=None) as batch_op:
        batch_op.drop_index("ix_tag_tag")

    op.drop_table("tag")
    with op.batch_alter_table("share_item", schema=None) as batch_op:
        batch_op.drop_index("ix_share_item_explanation")

    op.drop_table("share_item")
    with op.batch_alter_table("job", schema=None) as batch_op:
        batch_op.drop_index("ix_job_recent")
        batch_op.drop_index("ix_job_open")
        batch_op.drop_index("ix_job_explanation")

    op.drop_table("job")
    with op.batch_alter_table("share", schema=None) as batch_op:
        batch_op.drop_index("ix_share_owner")

    op.drop_table("share")
    with op.batch_alter_table("sample", schema=None) as batch_op:
        batch_op.drop_index("ix_sample_input")

    op.drop_table("sample")
    with op.batch_alter_table("reference", schema=None) as batch_op:
        batch_op.drop_index("ix_reference_owner")

    op.drop_table("reference")
    op.drop_table("prediction")
    op.drop_table("model")
    op.drop_table("input")
    op.drop_table("floor")
    with op.batch_alter_table("explanation", schema=None) as batch_op:
        batch_op.drop_index("uq_explanation_key", sqlite_where=sa.text("live"), postgresql_where=sa.text("live"))
        batch_op.drop_index("ix_explanation_trust")
        batch_op.drop_index("ix_explanation_top_class")
        batch_op.drop_index("ix_explanation_parent")
        batch_op.drop_index("ix_explanation_model")
        batch_op.drop_index("ix_explanation_input")
        batch_op.drop_index("ix_explanation_family")
        batch_op.drop_index("ix_explanation_explainer")
        batch_op.drop_index("ix_explanation_created")

    op.drop_table("explanation")
    op.drop_table("event")
    op.drop_table("dataset")
    op.drop_table("counter")
    op.drop_table("audit")
