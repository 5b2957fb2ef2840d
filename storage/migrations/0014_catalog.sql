-- What was made of a tool's texts, by the hash of what it was made from: it may be dropped.
CREATE TABLE tool_analyses (
    key   BLOB PRIMARY KEY,
    value BLOB NOT NULL,
    used  INTEGER NOT NULL  -- day since 1970 on which it was last needed
);

-- Tools that files describe: they can be found, not called.
CREATE TABLE tool_records (
    tool_id TEXT PRIMARY KEY,
    file    TEXT NOT NULL,  -- absolute path, without links
    record  TEXT NOT NULL   -- JSON
);
CREATE INDEX tool_records_file ON tool_records (file);

-- Which tool was called after which question; the newest few hundred of each identity are kept.
CREATE TABLE tool_uses (
    user_id   TEXT NOT NULL,
    device_id TEXT NOT NULL,
    agent_id  TEXT NOT NULL,
    query     TEXT NOT NULL,
    tool_id   TEXT NOT NULL,
    count     INTEGER NOT NULL,
    last_used REAL NOT NULL,
    PRIMARY KEY (user_id, device_id, agent_id, query, tool_id)
) WITHOUT ROWID;
CREATE TRIGGER tool_uses_unerased AFTER DELETE ON tool_uses BEGIN
    INSERT INTO meta (key, value) VALUES ('deletions', '1')
        ON CONFLICT (key) DO UPDATE SET value = CAST(value AS INTEGER) + 1;
END;

-- What each upstream server offered when it was last asked.
CREATE TABLE upstream_listings (
    server      TEXT PRIMARY KEY,
    fingerprint TEXT NOT NULL,  -- of its settings: another command is another server
    listing     TEXT NOT NULL,  -- JSON
    listed_at   REAL NOT NULL
);

-- The definition of each upstream tool that was accepted.
CREATE TABLE tool_pins (
    server     TEXT NOT NULL,
    tool       TEXT NOT NULL,
    sha256     TEXT NOT NULL,
    definition TEXT NOT NULL,     -- JSON, so that a change can be shown
    approved   INTEGER NOT NULL,  -- 1: a person looked at it; 0: it was the first
    pinned_at  REAL NOT NULL,
    PRIMARY KEY (server, tool)
) WITHOUT ROWID;
