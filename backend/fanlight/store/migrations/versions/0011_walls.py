"""Row-level security on PostgreSQL: a transaction sees rows of the workspace that it was opened for, or of all where it is the server's own."""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

# The setting is empty, not null, after a transaction that had it; the empty workspace is that of the server in the audit log.
SERVER = "(select current_setting('fanlight.server', true)) = 'on'"
HERE = "(select nullif(current_setting('fanlight.workspace', true), ''))"
ME = "(select nullif(current_setting('fanlight.person', true), ''))"

OWN = (
    "input model dataset sample prediction explanation listing tag job floor event share reference api_key counter sweep saved_view"
    " unreadable examination trial"
).split()
WITHIN = {"watcher": "job", "share_item": "share", "sweep_item": "sweep", "trial_item": "trial"}

# Per table and kind of statement the rows that a transaction of a workspace reaches.
RULES: dict[tuple[str, str], str] = {
    **{(table, "ALL"): f"workspace = {HERE}" for table in OWN},
    **{(t, "ALL"): f'EXISTS (SELECT 1 FROM "{of}" AS p WHERE p.id = "{t}"."{of}")' for t, of in WITHIN.items()},
    ("lane", "ALL"): f"space = {HERE}",
    # Who belongs to two workspaces is told so in both.
    ("member", "SELECT"): f"workspace = {HERE} OR person = {ME}",
    ("member", "INSERT"): f"workspace = {HERE}",
    ("member", "UPDATE"): f"workspace = {HERE}",
    ("member", "DELETE"): f"workspace = {HERE}",
    # Everybody's deeds are written down for the server; nobody but the server changes or deletes what is written.
    ("audit", "SELECT"): f"workspace = {HERE}",
    ("audit", "INSERT"): f"workspace = {HERE} OR workspace = ''",
    ("audit", "UPDATE"): "false",
    ("audit", "DELETE"): "false",
}


def upgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        return
    for table in dict.fromkeys(table for table, _ in RULES):
        op.execute(f'ALTER TABLE "{table}" ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY')
    for (table, what), rule in RULES.items():
        clause = "WITH CHECK" if what == "INSERT" else "USING"
        op.execute(f'CREATE POLICY fanlight_{what.lower()} ON "{table}" FOR {what} {clause} ({SERVER} OR {rule})')
    # How much is queued in all is for every request to know that adds to it; whose it is, is not.
    op.execute(
        """
        CREATE FUNCTION fanlight_queued(principal_ text, kind_ text, priority_ integer, OUT waiting bigint, OUT mine bigint)
        LANGUAGE plpgsql AS $$
        DECLARE before_ text := current_setting('fanlight.server', true);
        BEGIN
            PERFORM set_config('fanlight.server', 'on', true);
            SELECT coalesce(sum(cost), 0), coalesce(sum(CASE WHEN principal = principal_ THEN 1 ELSE 0 END), 0)
                INTO waiting, mine
                FROM job WHERE state IN ('queued', 'running') AND kind = kind_ AND priority <= priority_;
            PERFORM set_config('fanlight.server', coalesce(before_, ''), true);
        END $$
        """
    )


def downgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        return
    op.execute("DROP FUNCTION fanlight_queued(text, text, integer)")
    for table, what in RULES:
        op.execute(f'DROP POLICY fanlight_{what.lower()} ON "{table}"')
    for table in dict.fromkeys(table for table, _ in RULES):
        op.execute(f'ALTER TABLE "{table}" NO FORCE ROW LEVEL SECURITY, DISABLE ROW LEVEL SECURITY')
