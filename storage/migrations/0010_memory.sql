-- What was called and said, as it happened: layer 1 of memory.
CREATE TABLE sessions (  -- one conversation of one client
    id         TEXT NOT NULL,
    user_id    TEXT NOT NULL,
    device_id  TEXT NOT NULL,
    agent_id   TEXT NOT NULL,
    client     TEXT NOT NULL,  -- its name, as it says it
    start_time REAL NOT NULL,  -- Unix seconds
    last_time  REAL NOT NULL,
    PRIMARY KEY (user_id, device_id, agent_id, id)
) WITHOUT ROWID;
CREATE INDEX sessions_by_time ON sessions (user_id, last_time);

CREATE TABLE entries (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id      TEXT NOT NULL,
    device_id    TEXT NOT NULL,
    agent_id     TEXT NOT NULL,
    session_id   TEXT NOT NULL,
    kind         TEXT NOT NULL CHECK (kind IN ('call', 'message')),
    time         REAL NOT NULL,  -- Unix seconds when it began
    action       TEXT NOT NULL,  -- the tool's name, or what was said through
    target       TEXT NOT NULL,  -- what it was about
    arguments    TEXT NOT NULL,  -- JSON object, redacted and cut
    outcome      TEXT NOT NULL,  -- "ok" or the error_type
    said         TEXT NOT NULL,  -- how the answer or the message begins
    milliseconds REAL NOT NULL,
    importance   REAL NOT NULL,  -- 0 to 10
    is_recall    INTEGER NOT NULL  -- whether it only looked for what is stored
);
CREATE INDEX entries_of_session ON entries (user_id, session_id, seq);
CREATE INDEX entries_by_action ON entries (user_id, action, seq);
CREATE INDEX entries_by_target ON entries (user_id, target, seq);

CREATE TABLE entry_contexts (  -- which contexts an entry told of, and is forgotten with
    entry_seq   INTEGER NOT NULL REFERENCES entries (seq) ON DELETE CASCADE,
    context_seq INTEGER NOT NULL REFERENCES contexts (seq) ON DELETE CASCADE,
    PRIMARY KEY (entry_seq, context_seq)
) WITHOUT ROWID;
CREATE INDEX entry_contexts_of_context ON entry_contexts (context_seq);

-- Contexts that are memories: layers 2 (important), 3 (summaries) and 4 (semantic).
CREATE TABLE memories (
    context_seq INTEGER PRIMARY KEY REFERENCES contexts (seq) ON DELETE CASCADE,
    user_id     TEXT NOT NULL,
    layer       INTEGER NOT NULL CHECK (layer IN (2, 3, 4)),
    session_id  TEXT NOT NULL,
    uses        INTEGER NOT NULL DEFAULT 0,
    last_used   REAL  -- Unix seconds; NULL means never
);
CREATE INDEX memories_of_layer ON memories (user_id, layer, context_seq);

CREATE TABLE memory_parts (  -- what a memory was made from: entries of layer 1, other memories
    memory_seq INTEGER NOT NULL REFERENCES contexts (seq) ON DELETE CASCADE,
    entry_seq  INTEGER REFERENCES entries (seq) ON DELETE CASCADE,
    part_seq   INTEGER REFERENCES contexts (seq) ON DELETE CASCADE,
    CHECK ((entry_seq IS NULL) <> (part_seq IS NULL))
);
CREATE INDEX memory_parts_of_memory ON memory_parts (memory_seq);
CREATE INDEX memory_parts_by_entry ON memory_parts (entry_seq);
CREATE INDEX memory_parts_by_part ON memory_parts (part_seq);

-- What is forgotten is told on by no entry.
CREATE TRIGGER contexts_untold BEFORE DELETE ON contexts BEGIN
    UPDATE entries SET target = '', arguments = '{}', said = ''
        WHERE seq IN (SELECT entry_seq FROM entry_contexts WHERE context_seq = old.seq);
END;
CREATE TRIGGER entries_unerased AFTER DELETE ON entries BEGIN
    INSERT INTO meta (key, value) VALUES ('deletions', '1')
        ON CONFLICT (key) DO UPDATE SET value = CAST(value AS INTEGER) + 1;
END;
