"""Trials: interventions tried on every explanation of a sweep."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    json = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
    op.create_table(
        "trial",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("workspace", sa.String(length=64), nullable=False),
        sa.Column("principal", sa.String(length=64), nullable=False),
        sa.Column("sweep", sa.String(length=32), nullable=False),
        sa.Column("edits", json, nullable=False),
        sa.Column("about", sa.Text(), nullable=False),
        sa.Column("narrowed", json, nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("problem", sa.Text()),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("owner", sa.String(length=64)),
        sa.Column("lease_until", sa.BigInteger()),
        sa.Column("turn", sa.BigInteger(), nullable=False),
        sa.Column("spent", sa.BigInteger(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("finished", sa.BigInteger()),
        sa.ForeignKeyConstraint(["sweep"], ["sweep.id"], name=op.f("fk_trial_sweep"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_trial")),
    )
    op.create_index("ix_trial_sweep", "trial", ["sweep", "created"])
    op.create_index("ix_trial_state", "trial", ["state", "turn"])
    op.create_table(
        "trial_item",
        sa.Column("trial", sa.String(length=32), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=300), nullable=False),
        sa.Column("label", sa.String(length=200)),
        sa.Column("input", sa.String(length=64), nullable=False),
        sa.Column("explanation", sa.String(length=32), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text()),
        sa.Column("before", sa.String(length=200)),
        sa.Column("before_probability", sa.Float()),
        sa.Column("after", sa.String(length=200)),
        sa.Column("after_probability", sa.Float()),
        sa.Column("move", sa.String(length=16)),
        sa.ForeignKeyConstraint(["trial"], ["trial.id"], name=op.f("fk_trial_item_trial"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("trial", "position", name=op.f("pk_trial_item")),
    )
    op.create_index("ix_trial_item_state", "trial_item", ["trial", "state", "position"])
    op.create_index("ix_trial_item_move", "trial_item", ["trial", "move", "position"])


def downgrade() -> None:
    for name in ("trial_item", "trial"):
        op.drop_table(name)
