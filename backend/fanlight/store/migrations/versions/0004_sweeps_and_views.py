"""Sweeps over data sets, saved views of the gallery, and which files of a data set could not be read."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    json = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
    op.create_table(
        "sweep",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("workspace", sa.String(length=64), nullable=False),
        sa.Column("principal", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("spec", json, nullable=False),
        sa.Column("model", sa.String(length=128), nullable=False),
        sa.Column("model_digest", sa.String(length=64), nullable=False),
        sa.Column("explainer", sa.String(length=64), nullable=False),
        sa.Column("dataset", sa.String(length=128)),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("problem", sa.Text()),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("spent", sa.BigInteger(), nullable=False),
        sa.Column("since", sa.BigInteger()),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("finished", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sweep")),
    )
    op.create_index("ix_sweep_recent", "sweep", ["workspace", "created"])
    op.create_index("ix_sweep_state", "sweep", ["state"])
    op.create_table(
        "sweep_item",
        sa.Column("sweep", sa.String(length=32), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=300), nullable=False),
        sa.Column("label", sa.String(length=200)),
        sa.Column("input", sa.String(length=64)),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("explanation", sa.String(length=32)),
        sa.Column("reused", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.Text()),
        sa.Column("finished", sa.BigInteger()),
        sa.ForeignKeyConstraint(["sweep"], ["sweep.id"], name=op.f("fk_sweep_item_sweep"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("sweep", "position", name=op.f("pk_sweep_item")),
    )
    op.create_index("ix_sweep_item_state", "sweep_item", ["sweep", "state", "position"])
    op.create_index("ix_sweep_item_explanation", "sweep_item", ["explanation"])
    op.create_table(
        "saved_view",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("workspace", sa.String(length=64), nullable=False),
        sa.Column("principal", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("query", json, nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("deleted", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_saved_view")),
    )
    op.create_index("ix_saved_view_recent", "saved_view", ["workspace", "created"])
    op.create_table(
        "unreadable",
        sa.Column("workspace", sa.String(length=64), nullable=False),
        sa.Column("dataset", sa.String(length=128), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=300), nullable=False),
        sa.Column("label", sa.String(length=200)),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("workspace", "dataset", "position", name=op.f("pk_unreadable")),
    )
    if op.get_bind().dialect.name != "sqlite":  # its words were stored as one: the gallery is listed anew
        op.execute("UPDATE counter SET value = 0 WHERE name = 'listed'")


def downgrade() -> None:
    for name in ("unreadable", "saved_view", "sweep_item", "sweep"):
        op.drop_table(name)
