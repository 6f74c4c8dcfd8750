"""The gallery's list apart from the explanations: narrow, with a full-text index. What is stored already is listed at the next start."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

NARROWED = {
    "family": "family",
    "explainer": "explainer",
    "model": "model",
    "top_class": "top_class",
    "trust": "trust_class",
}

# SQLite keeps the index of another table's column up to date by triggers (https://sqlite.org/fts5.html, section 4.4.3).
WORDS = """CREATE VIRTUAL TABLE listing_words USING fts5(
    words, content='listing', content_rowid='n', tokenize='unicode61', prefix='2 3', detail='none', columnsize=0)"""
TRIGGERS = {
    "listing_added": """AFTER INSERT ON listing BEGIN
        INSERT INTO listing_words(rowid, words) VALUES (new.n, new.words); END""",
    "listing_removed": """AFTER DELETE ON listing BEGIN
        INSERT INTO listing_words(listing_words, rowid, words) VALUES ('delete', old.n, old.words); END""",
    "listing_changed": """AFTER UPDATE OF words ON listing WHEN old.words <> new.words BEGIN
        INSERT INTO listing_words(listing_words, rowid, words) VALUES ('delete', old.n, old.words);
        INSERT INTO listing_words(rowid, words) VALUES (new.n, new.words); END""",
}


def upgrade() -> None:
    sqlite = op.get_bind().dialect.name == "sqlite"
    counting = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "listing",
        sa.Column("n", counting, autoincrement=True, nullable=False),
        sa.Column("explanation", sa.String(length=32), nullable=False),
        sa.Column("workspace", sa.String(length=64), nullable=False),
        sa.Column("shown", sa.Boolean(), nullable=False),
        sa.Column("family", sa.String(length=32), nullable=False),
        sa.Column("explainer", sa.String(length=64), nullable=False),
        sa.Column("model", sa.String(length=128), nullable=False),
        sa.Column("class", sa.String(length=200)),
        sa.Column("outcome", sa.String(length=8)),
        sa.Column("trust", sa.String(length=16), nullable=False),
        sa.Column("dataset", sa.String(length=128)),
        sa.Column("tags", sa.Text()),
        sa.Column("faithfulness", sa.Float(), nullable=False),
        sa.Column("probability", sa.Float(), nullable=False),
        sa.Column("words", sa.Text().with_variant(postgresql.TSVECTOR(), "postgresql"), nullable=False),
        sa.PrimaryKeyConstraint("n", name=op.f("pk_listing")),
        sa.UniqueConstraint("explanation", name=op.f("uq_listing_explanation")),
    )
    op.create_index("ix_listing_n", "listing", ["workspace", "n"])
    op.create_index("ix_listing_faithfulness", "listing", ["workspace", "faithfulness", "n"])
    op.create_index("ix_listing_probability", "listing", ["workspace", "probability", "n"])
    if sqlite:
        op.execute(WORDS)
        for name, action in TRIGGERS.items():
            op.execute(f"CREATE TRIGGER {name} {action}")
    else:
        op.create_index("ix_listing_words", "listing", ["words"], postgresql_using="gin")
    for name in NARROWED:
        op.drop_index(f"ix_explanation_{name}", table_name="explanation")
    op.drop_column("explanation", "search")
    _name_all()


def downgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        for name in TRIGGERS:
            op.execute(f"DROP TRIGGER {name}")
        op.execute("DROP TABLE listing_words")
    op.drop_table("listing")
    op.execute("DELETE FROM counter WHERE name IN ('listed', 'shown')")
    op.add_column("explanation", sa.Column("search", sa.Text(), nullable=False, server_default=""))
    for name, column in NARROWED.items():
        op.create_index(f"ix_explanation_{name}", "explanation", ["workspace", column, "created"])


def _name_all() -> None:
    """An event for every explanation, in order: what is listed follows from events alone."""
    explanation = sa.table("explanation", sa.column("id"), sa.column("workspace"), sa.column("created"))
    event = sa.table("event", sa.column("workspace"), sa.column("data", sa.JSON), sa.column("created"))
    conn = op.get_bind()
    found = conn.execute(sa.select(explanation).order_by(explanation.c.created))
    while rows := found.fetchmany(1000):
        named = [
            {"workspace": r.workspace, "data": {"type": "listed", "explanation": r.id}, "created": r.created}
            for r in rows
        ]
        conn.execute(sa.insert(event), named)
