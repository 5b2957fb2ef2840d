-- What was called and said, as it happened: layer 1 of memory.
CREATE TABLE sessions (  -- one conversation of one client
    id         TEXT NOT NULL,
    user_id    TEXT NOT NULL,
    device_id  TEXT NOT NULL,
    agent_id   TEXT NOT NULL,
    client     TEXT NOT NULL,  -- its name, as it says it
    start_time REAL NOT NULL,  -- Unix seconds
    last_time  REAL NOT NULL,
    told_until REAL,  -- the last_time that it was summed up at; NULL means it is to be
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
CREATE INDEX entries_that_matter ON entries (user_id, seq) WHERE importance >= 6.0 AND is_recall = 0;

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

CREATE TABLE memory_parts (  -- which entries a memory was made from
    memory_seq INTEGER NOT NULL REFERENCES contexts (seq) ON DELETE CASCADE,
    entry_seq  INTEGER NOT NULL,  -- triggers see to what goes with it
    is_copy    INTEGER NOT NULL,  -- whether it says what the entry says: they are forgotten together
    PRIMARY KEY (memory_seq, entry_seq)
) WITHOUT ROWID;
CREATE INDEX memory_parts_by_entry ON memory_parts (entry_seq);

-- What is forgotten is told on by no entry.
CREATE TRIGGER contexts_untold BEFORE DELETE ON contexts BEGIN
    UPDATE entries SET target = '', arguments = '{}', said = ''
        WHERE seq IN (SELECT entry_seq FROM entry_contexts WHERE context_seq = old.seq);
END;
CREATE TRIGGER entries_unerased AFTER DELETE ON entries BEGIN
    INSERT INTO meta (key, value) VALUES ('deletions', '1')
        ON CONFLICT (key) DO UPDATE SET value = CAST(value AS INTEGER) + 1;
END;

-- What was made from an entry that is forgotten goes with it, and so does what tells of that; what
-- the other entries say is told anew. A trigger does not set itself off, and need not: nothing is made
-- from an entry that tells of what was made from entries.
CREATE TRIGGER entries_untold AFTER UPDATE OF target, arguments, said ON entries BEGIN
    UPDATE sessions SET told_until = NULL WHERE user_id = new.user_id
        AND device_id = new.device_id AND agent_id = new.agent_id AND id = new.session_id
        AND EXISTS (SELECT 1 FROM memory_parts WHERE entry_seq = new.seq);
    UPDATE entries SET target = '', arguments = '{}', said = '' WHERE seq IN (
        SELECT l.entry_seq FROM memory_parts p JOIN entry_contexts l ON l.context_seq = p.memory_seq
        WHERE p.entry_seq = new.seq
    );
    DELETE FROM contexts WHERE seq IN (
        SELECT memory_seq FROM memory_parts WHERE entry_seq = new.seq
    );
END;
CREATE TRIGGER entries_unmade AFTER DELETE ON entries BEGIN
    UPDATE sessions SET told_until = NULL WHERE user_id = old.user_id
        AND device_id = old.device_id AND agent_id = old.agent_id AND id = old.session_id
        AND EXISTS (SELECT 1 FROM memory_parts WHERE entry_seq = old.seq);
    DELETE FROM contexts WHERE seq IN (
        SELECT memory_seq FROM memory_parts WHERE entry_seq = old.seq
    );
END;
CREATE TRIGGER parts_untold AFTER DELETE ON memory_parts WHEN old.is_copy BEGIN
    UPDATE entries SET target = '', arguments = '{}', said = '' WHERE seq = old.entry_seq;
END;
-- An entry tells of an entity that was asked for by its name or an alias.
CREATE TRIGGER entities_untold AFTER DELETE ON entities BEGIN
    UPDATE entries SET target = '', arguments = '{}', said = '' WHERE seq IN (
        WITH called (name, quoted) AS (
            SELECT value, lower(json_quote(value)) FROM json_each(old.aliases)
            UNION SELECT old.name, lower(json_quote(old.name))
        )
        SELECT e.seq FROM entries e JOIN called ON e.target = name COLLATE NOCASE
            OR e.kind = 'message' AND e.said = name COLLATE NOCASE
            OR instr(replace(lower(e.arguments), quoted || ':', ''), quoted)  -- keys are no names
        WHERE e.user_id = old.user_id
    );
END;
