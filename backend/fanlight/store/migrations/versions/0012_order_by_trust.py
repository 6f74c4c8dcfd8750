"""An index of the gallery's list by trust and faithfulness: what is not above the floor comes last in the order of all."""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_listing_trust", "listing", ["workspace", "trust", "faithfulness", "n"])


def downgrade() -> None:
    op.drop_index("ix_listing_trust", table_name="listing")
