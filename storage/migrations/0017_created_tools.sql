-- Tools that agents have written. Every version stays; the newest of a name counts, unless removed.
CREATE TABLE created_tools (
    user_id     TEXT NOT NULL,  -- whose it is
    name        TEXT NOT NULL,
    version     INTEGER NOT NULL,  -- from 1
    device_id   TEXT NOT NULL,  -- where it was written
    agent_id    TEXT NOT NULL,
    session_id  TEXT NOT NULL,
    client      TEXT NOT NULL,
    source      TEXT NOT NULL,  -- Python
    definition  TEXT NOT NULL,  -- JSON
    digest      TEXT NOT NULL,  -- SHA-256 of name, source and definition
    created_at  REAL NOT NULL,
    removed_at  REAL,
    PRIMARY KEY (user_id, name, version)
);
