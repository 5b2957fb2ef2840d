-- What a person was asked about, and answered. A row is of one call: its digest, whose it is, beneath
-- which root. States: asked (a client shows it), pending (the command line does), approved, running,
-- kept (for the same call, which comes again with answers), used; denied, told.
CREATE TABLE approvals (
    ticket TEXT PRIMARY KEY,
    user_id TEXT NOT NULL,
    device_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    root TEXT NOT NULL,
    digest TEXT NOT NULL,
    tool TEXT NOT NULL,
    client TEXT NOT NULL,
    shown TEXT NOT NULL,
    reason TEXT NOT NULL,
    rule TEXT NOT NULL,
    state TEXT NOT NULL,
    decided_by TEXT NOT NULL DEFAULT '',
    created REAL NOT NULL,
    expires REAL NOT NULL
) WITHOUT ROWID;

CREATE INDEX approvals_digest ON approvals (digest);

-- Rules that a person allowed for a while.
CREATE TABLE grants (
    grant_id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL,
    device_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    root TEXT NOT NULL,
    rule TEXT NOT NULL,
    granted_by TEXT NOT NULL,
    created REAL NOT NULL,
    expires REAL NOT NULL
) WITHOUT ROWID;

-- Who has the list of questions open just now.
CREATE TABLE approval_watchers (
    watcher TEXT PRIMARY KEY,
    seen REAL NOT NULL
) WITHOUT ROWID;
