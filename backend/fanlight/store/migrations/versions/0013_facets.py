"""On SQLite an index that holds what the gallery counts, so that no wide row is read for it, and the vocabulary of the words of the list."""

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

COUNTED = 'shown, family, explainer, model, "class", outcome, trust, dataset, tags, faithfulness, probability'


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":  # an index row of PostgreSQL has no room for many tags
        op.execute(f"CREATE INDEX ix_listing_words_facets ON listing (workspace, n, {COUNTED})")
        op.execute("CREATE VIRTUAL TABLE listing_words_terms USING fts5vocab(listing_words, row)")


def downgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        op.execute("DROP TABLE listing_words_terms")
        op.execute("DROP INDEX ix_listing_words_facets")
