-- Work that was given to other agents. A row is what an agent's token stands for: how deep it is,
-- which tools it may call, and until when. Rows of one root share its ceilings.
CREATE TABLE delegations (
    id             TEXT PRIMARY KEY,
    digest         BLOB NOT NULL UNIQUE,  -- SHA-256 of the token, which only the agent has
    root           TEXT NOT NULL,  -- the first of those that led to this one; its own id if none did
    parent         TEXT NOT NULL,  -- the one whose agent asked for it; empty if none did
    depth          INTEGER NOT NULL,  -- 1 of the root
    agent          TEXT NOT NULL,
    user_id        TEXT NOT NULL,
    device_id      TEXT NOT NULL,
    agent_id       TEXT NOT NULL,
    parent_session TEXT NOT NULL,  -- whose call it is
    session_id     TEXT NOT NULL UNIQUE,  -- in which the agent's own calls are recorded
    tools          TEXT NOT NULL,  -- JSON: the tool sets that its calls are within
    began          REAL NOT NULL,
    ends           REAL NOT NULL,  -- at the latest; then the token counts for nothing
    seconds        REAL,  -- that it took; NULL while it runs
    reserved_cost  REAL NOT NULL,  -- US dollars that are set aside for it
    cost           REAL NOT NULL DEFAULT 0,  -- US dollars, as the agent told
    outcome        TEXT NOT NULL DEFAULT ''  -- empty while it runs
) WITHOUT ROWID;

CREATE INDEX delegations_root ON delegations (root);
