"""Fair turns: weights of workspaces, lanes, and an index of the jobs that are free."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

FREE = "state = 'queued' AND owner IS NULL AND NOT cancel_requested"


def upgrade() -> None:
    op.add_column("workspace", sa.Column("weight", sa.Integer(), nullable=False, server_default="1"))
    op.create_table(
        "lane",
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("space", sa.String(length=64), nullable=False),
        sa.Column("principal", sa.String(length=64), nullable=False),
        sa.Column("deficit", sa.Float(), nullable=False),
        sa.Column("allowance", sa.Float(), nullable=False),
        sa.Column("turn", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("kind", "priority", "space", "principal", name=op.f("pk_lane")),
    )
    op.create_index(
        "ix_job_free",
        "job",
        ["kind", "priority", "workspace", "principal", "created", "cost"],
        sqlite_where=sa.text(FREE),
        postgresql_where=sa.text(FREE),
    )


def downgrade() -> None:
    op.drop_index("ix_job_free", table_name="job")
    op.drop_table("lane")
    with op.batch_alter_table("workspace") as table:
        table.drop_column("weight")
