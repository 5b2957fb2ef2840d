-- What agents did to files, apart from the record: it is bounded, and no part of a backup.
-- Paths are bytes, since not every name is text. A state is a SHA-256 of content, empty where
-- nothing is, else a word for what is there (storage/keeping/changes/models.py).

CREATE TABLE contents (
    digest TEXT NOT NULL UNIQUE,
    packed BLOB NOT NULL
);

CREATE TABLE totals (bytes INTEGER NOT NULL);
INSERT INTO totals VALUES (0);

CREATE TRIGGER content_added AFTER INSERT ON contents BEGIN
    UPDATE totals SET bytes = bytes + length(NEW.packed);
END;

CREATE TRIGGER content_removed AFTER DELETE ON contents BEGIN
    UPDATE totals SET bytes = bytes - length(OLD.packed);
END;

CREATE TABLE changes (
    change_id INTEGER PRIMARY KEY AUTOINCREMENT,
    call TEXT NOT NULL,
    time REAL NOT NULL,
    user_id TEXT NOT NULL,
    device_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    tool TEXT NOT NULL,
    root BLOB NOT NULL,
    path BLOB NOT NULL,
    before TEXT NOT NULL,
    before_mode INTEGER NOT NULL,
    why TEXT NOT NULL,
    after TEXT NOT NULL,
    after_mode INTEGER NOT NULL
);
CREATE INDEX changes_of_user ON changes (user_id, root, change_id);
CREATE INDEX changes_by_call ON changes (call);
CREATE INDEX changes_by_before ON changes (before);

CREATE TABLE roots (
    root BLOB PRIMARY KEY,
    generation INTEGER NOT NULL,
    seen REAL NOT NULL
) WITHOUT ROWID;

CREATE TABLE files (
    root BLOB NOT NULL,
    path BLOB NOT NULL,
    state TEXT NOT NULL,
    mode INTEGER NOT NULL,
    why TEXT NOT NULL,
    signature TEXT NOT NULL,
    PRIMARY KEY (root, path)
) WITHOUT ROWID;
CREATE INDEX files_by_state ON files (state);

CREATE TABLE programs (
    call TEXT PRIMARY KEY,
    time REAL NOT NULL,
    user_id TEXT NOT NULL,
    device_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    tool TEXT NOT NULL,
    root BLOB NOT NULL,
    pid INTEGER NOT NULL
) WITHOUT ROWID;
