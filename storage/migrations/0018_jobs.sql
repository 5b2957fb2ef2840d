-- Calls that go on after their callers were told to look again. States: working; completed, failed,
-- cancelled; lost, where the process that worked on it died.
CREATE TABLE jobs (
    id        TEXT PRIMARY KEY,
    user_id   TEXT NOT NULL,
    device_id TEXT NOT NULL,
    agent_id  TEXT NOT NULL,
    tool      TEXT NOT NULL,
    process   TEXT NOT NULL,  -- that works on it
    state     TEXT NOT NULL CHECK (state IN ('working', 'completed', 'failed', 'cancelled', 'lost')),
    began     REAL NOT NULL,
    ended     REAL,
    done      REAL,
    total     REAL,
    message   TEXT NOT NULL DEFAULT '',
    heard     REAL NOT NULL,  -- when it last said how far it is
    awaits    TEXT NOT NULL DEFAULT '',  -- what a person or a model has to answer first
    unwanted  INTEGER NOT NULL DEFAULT 0,  -- whether somebody wants it cancelled
    result    TEXT  -- JSON
);

CREATE INDEX jobs_state ON jobs (state, process);
