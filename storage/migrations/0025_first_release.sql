-- The schema of the first release. Its number follows those of the development versions before it,
-- so that their data directories are recognized and refused (storage/database.py). A change of the
-- schema adds a file with the next number, which upgrades a record in place.

-- Facts about the data directory itself.
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- The users whose vectors the vector index holds, by model: those with too many to compare.
CREATE TABLE vector_collections (
    user_id   TEXT NOT NULL,
    model_seq INTEGER NOT NULL,
    PRIMARY KEY (user_id, model_seq)
) WITHOUT ROWID;

-- What the indexer still has to do in these collections: bring a chunk's vector to what
-- `embeddings` holds when it does so, which may be nothing.
CREATE TABLE vector_outbox (
    seq       INTEGER PRIMARY KEY AUTOINCREMENT,
    chunk_seq INTEGER NOT NULL,
    user_id   TEXT NOT NULL,
    model_seq INTEGER NOT NULL
);

-- A context is one whole item: a document, a piece of knowledge, an event. Searches find it by its
-- chunks.
CREATE TABLE contexts (
    seq             INTEGER PRIMARY KEY AUTOINCREMENT,
    id              TEXT NOT NULL UNIQUE,
    context_type    TEXT NOT NULL,
    user_id         TEXT NOT NULL,
    device_id       TEXT NOT NULL,
    agent_id        TEXT NOT NULL,
    raw_type        TEXT NOT NULL,
    raw_id          TEXT NOT NULL,
    title           TEXT NOT NULL,
    summary         TEXT NOT NULL,
    keywords        TEXT NOT NULL,  -- JSON array
    entities        TEXT NOT NULL,  -- JSON array of names
    metadata        TEXT NOT NULL,  -- JSON object
    confidence      REAL NOT NULL,  -- 0 to 10
    importance      REAL NOT NULL,  -- 0 to 10
    create_time     REAL NOT NULL,
    update_time     REAL NOT NULL,
    event_time      REAL NOT NULL,
    media_type      TEXT NOT NULL,
    file_path       TEXT NOT NULL,
    sha256          TEXT NOT NULL,
    merge_count     INTEGER NOT NULL,
    hierarchy_level INTEGER NOT NULL,  -- 1 to 3 for summaries of events, else 0
    time_bucket     TEXT NOT NULL,     -- of an event or a summary, else empty
    bucket_end      REAL,              -- of a summary, whose event_time is the bucket's start
    parent_seq      INTEGER REFERENCES contexts (seq) ON DELETE SET NULL,
    of_turns        INTEGER NOT NULL DEFAULT 0,  -- 1 for a conversation, whose chunks are turns
    -- 1 if its chunks get no vectors, because a program wrote them
    words_only      INTEGER AS (json_extract(metadata, '$.words_only') IS 1) VIRTUAL
);
CREATE INDEX contexts_words_only ON contexts (user_id) WHERE words_only;
CREATE UNIQUE INDEX contexts_of_source ON contexts (user_id, device_id, agent_id, raw_type, raw_id)
    WHERE context_type = 'document';
CREATE UNIQUE INDEX contexts_of_bucket
    ON contexts (user_id, device_id, agent_id, hierarchy_level, time_bucket)
    WHERE hierarchy_level > 0;
CREATE INDEX contexts_by_source ON contexts (user_id, raw_type, raw_id, event_time);
CREATE INDEX contexts_by_event_time ON contexts (user_id, event_time);
CREATE INDEX contexts_by_create_time ON contexts (user_id, create_time);
CREATE INDEX contexts_by_update_time ON contexts (user_id, update_time);
CREATE INDEX contexts_by_sha256 ON contexts (user_id, sha256);
CREATE INDEX contexts_by_bucket_end ON contexts (user_id, bucket_end)
    WHERE bucket_end IS NOT NULL;
CREATE INDEX contexts_by_parent ON contexts (parent_seq);
CREATE INDEX contexts_by_identity ON contexts (user_id, device_id, agent_id);

CREATE TABLE children (  -- what a summary was made from
    parent_seq INTEGER NOT NULL REFERENCES contexts (seq) ON DELETE CASCADE,
    child_seq  INTEGER NOT NULL REFERENCES contexts (seq) ON DELETE CASCADE,
    PRIMARY KEY (parent_seq, child_seq)
) WITHOUT ROWID;
CREATE INDEX children_of_child ON children (child_seq);

-- AUTOINCREMENT: a seq is never reused, because it names a text in both indexes too.
CREATE TABLE chunks (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    context_seq INTEGER NOT NULL REFERENCES contexts (seq) ON DELETE CASCADE,
    user_id     TEXT NOT NULL,
    position    INTEGER NOT NULL,
    start       INTEGER NOT NULL,  -- where the content begins in the context's text
    heading     TEXT NOT NULL,
    content     TEXT NOT NULL
);
CREATE INDEX chunks_of_context ON chunks (context_seq, position);
CREATE INDEX chunks_of_user ON chunks (user_id);

CREATE TABLE mentions (
    user_id     TEXT NOT NULL,
    folded      TEXT NOT NULL,  -- the name, case and accents folded
    context_seq INTEGER NOT NULL REFERENCES contexts (seq) ON DELETE CASCADE,
    name        TEXT NOT NULL,
    PRIMARY KEY (user_id, folded, context_seq)
) WITHOUT ROWID;
CREATE INDEX mentions_of_context ON mentions (context_seq);

-- The lexical index (storage/index/lexical.py): chunks that are in no segment yet. A term is the
-- hash of its text.
CREATE TABLE lexical_fresh (
    chunk_seq INTEGER PRIMARY KEY,
    user_id   TEXT NOT NULL,
    length    INTEGER NOT NULL,
    terms     BLOB NOT NULL,  -- int64 each
    counts    BLOB NOT NULL   -- uint16 each
);
CREATE INDEX lexical_fresh_of_user ON lexical_fresh (user_id);

-- Segments never change; one that is not live is being written, or is unused.
CREATE TABLE lexical_segments (
    seq     INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id TEXT NOT NULL,
    live    INTEGER NOT NULL,
    tier    INTEGER NOT NULL,
    size    INTEGER NOT NULL,  -- chunks
    chunks  BLOB NOT NULL,     -- int64 each, ascending
    lengths BLOB NOT NULL      -- uint32 each
);
CREATE INDEX lexical_segments_of_user ON lexical_segments (live, user_id, tier);

-- The postings of consecutive terms in order of their hashes. `sizes` counts those of each term; a
-- place is an index into the segment's chunks.
CREATE TABLE lexical_blocks (
    seq         INTEGER PRIMARY KEY,
    segment_seq INTEGER NOT NULL REFERENCES lexical_segments (seq),
    first_term  INTEGER NOT NULL,
    terms       BLOB NOT NULL,  -- int64 each
    sizes       BLOB NOT NULL,  -- uint32 each
    places      BLOB NOT NULL,  -- uint32 each
    counts      BLOB NOT NULL   -- uint16 each
);
CREATE UNIQUE INDEX lexical_blocks_by_term ON lexical_blocks (segment_seq, first_term);

-- Deleted chunks that a segment still holds.
CREATE TABLE lexical_dead (
    chunk_seq INTEGER PRIMARY KEY,
    user_id   TEXT NOT NULL,
    time      INTEGER NOT NULL  -- Unix seconds
);
CREATE INDEX lexical_dead_of_user ON lexical_dead (user_id, time);

-- Ranges of chunks that are not indexed yet.
CREATE TABLE lexical_todo (
    first_seq INTEGER NOT NULL,
    last_seq  INTEGER NOT NULL
);

-- A deletion reaches every index, whichever statement or cascade caused it.
CREATE TRIGGER chunks_deleted AFTER DELETE ON chunks BEGIN
    INSERT INTO lexical_dead (chunk_seq, user_id, time)
        SELECT old.seq, old.user_id, CAST(strftime('%s', 'now') AS INTEGER)
        WHERE NOT EXISTS (SELECT 1 FROM lexical_fresh WHERE chunk_seq = old.seq)
        AND NOT EXISTS (SELECT 1 FROM lexical_todo WHERE old.seq BETWEEN first_seq AND last_seq);
    DELETE FROM lexical_fresh WHERE chunk_seq = old.seq;
    INSERT INTO vector_outbox (chunk_seq, user_id, model_seq)
        SELECT old.seq, old.user_id, v.model_seq FROM vector_collections v
        JOIN models m ON m.seq = v.model_seq AND m.state <> 'old' WHERE v.user_id = old.user_id;
END;

-- Statistics for SQLite's planner, whatever the tables contain: a user has many contexts, of which
-- few share the other columns. Without them it assumes ten contexts and scans all
-- (https://sqlite.org/optoverview.html#manctrl).
ANALYZE sqlite_master;
DELETE FROM sqlite_stat1;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('contexts', 'contexts_by_source', '100000 50000 10000 10 2'),
    ('contexts', 'contexts_by_identity', '100000 50000 10000 5000'),
    ('contexts', 'contexts_by_event_time', '100000 50000 2'),
    ('contexts', 'contexts_by_create_time', '100000 50000 2'),
    ('contexts', 'contexts_by_update_time', '100000 50000 2'),
    ('contexts', 'contexts_by_sha256', '100000 50000 2');
ANALYZE sqlite_master;

CREATE TABLE profiles (  -- of the user, one for each identity
    user_id     TEXT NOT NULL,
    device_id   TEXT NOT NULL,
    agent_id    TEXT NOT NULL,
    summary     TEXT NOT NULL,
    facts       TEXT NOT NULL,  -- JSON object
    metadata    TEXT NOT NULL,  -- JSON object
    create_time REAL NOT NULL,
    update_time REAL NOT NULL,
    PRIMARY KEY (user_id, device_id, agent_id)
) WITHOUT ROWID;

CREATE TABLE entities (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id     TEXT NOT NULL,
    device_id   TEXT NOT NULL,
    agent_id    TEXT NOT NULL,
    folded      TEXT NOT NULL,  -- the name, case and accents folded
    entity_type TEXT NOT NULL,
    name        TEXT NOT NULL,
    summary     TEXT NOT NULL,
    aliases     TEXT NOT NULL,  -- JSON array
    metadata    TEXT NOT NULL,  -- JSON object
    importance  REAL NOT NULL,  -- 0 to 10
    create_time REAL NOT NULL,
    update_time REAL NOT NULL,
    UNIQUE (user_id, device_id, agent_id, folded, entity_type)
);
CREATE INDEX entities_by_name ON entities (user_id, folded);

CREATE TABLE entity_names (  -- every spelling of an entity's names
    user_id    TEXT NOT NULL,
    folded     TEXT NOT NULL,
    entity_seq INTEGER NOT NULL REFERENCES entities (seq) ON DELETE CASCADE,
    spelling   TEXT NOT NULL,
    is_alias   INTEGER NOT NULL,
    PRIMARY KEY (user_id, folded, entity_seq)
) WITHOUT ROWID;
CREATE INDEX entity_names_of_entity ON entity_names (entity_seq);

CREATE TABLE entity_terms (  -- every word of an entity's texts
    user_id    TEXT NOT NULL,
    term       TEXT NOT NULL,
    entity_seq INTEGER NOT NULL REFERENCES entities (seq) ON DELETE CASCADE,
    weight     INTEGER NOT NULL,  -- its occurrences; those in a name count twice
    PRIMARY KEY (user_id, term, entity_seq)
) WITHOUT ROWID;
CREATE INDEX entity_terms_of_entity ON entity_terms (entity_seq);

CREATE TABLE relationships (  -- directed, from source to target
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id     TEXT NOT NULL,
    device_id   TEXT NOT NULL,
    agent_id    TEXT NOT NULL,
    source_seq  INTEGER NOT NULL REFERENCES entities (seq) ON DELETE CASCADE,
    folded      TEXT NOT NULL,  -- the relation, case and separators folded
    target_seq  INTEGER NOT NULL REFERENCES entities (seq) ON DELETE CASCADE,
    relation    TEXT NOT NULL,
    description TEXT NOT NULL,
    metadata    TEXT NOT NULL,  -- JSON object
    create_time REAL NOT NULL,
    update_time REAL NOT NULL,
    until       REAL,  -- when it ended; NULL while it holds
    UNIQUE (source_seq, target_seq, folded, user_id, device_id, agent_id)
);
CREATE INDEX relationships_of_target ON relationships (target_seq);

-- Vectors of two models: searches use those of the current one; the next one takes over when it has
-- a vector for every chunk.
CREATE TABLE models (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,  -- never reused; names its vectors in Chroma too
    scheme     TEXT NOT NULL,     -- the embedder's model_id
    state      TEXT NOT NULL CHECK (state IN ('current', 'next', 'old')),
    dimensions INTEGER            -- NULL until something is embedded
);
CREATE UNIQUE INDEX models_in_use ON models (state) WHERE state <> 'old';

CREATE TABLE embeddings (
    chunk_seq INTEGER NOT NULL REFERENCES chunks (seq) ON DELETE CASCADE,
    model_seq INTEGER NOT NULL REFERENCES models (seq),
    vector    BLOB NOT NULL,   -- float32, little endian, unit length
    PRIMARY KEY (chunk_seq, model_seq)
);
CREATE TABLE embed_queue (
    chunk_seq INTEGER NOT NULL REFERENCES chunks (seq) ON DELETE CASCADE,
    model_seq INTEGER NOT NULL REFERENCES models (seq),
    user_id   TEXT NOT NULL,
    priority  INTEGER NOT NULL DEFAULT 0,  -- of storage.index.embed_queue
    PRIMARY KEY (chunk_seq, model_seq)
) WITHOUT ROWID;
CREATE INDEX embed_queue_of_user ON embed_queue (model_seq, user_id);
CREATE INDEX embed_queue_by_priority ON embed_queue (model_seq, priority);

-- Until a chunk of a large import has its vector, searches find it by an approximate one.
CREATE TABLE rough_vectors (
    chunk_seq INTEGER PRIMARY KEY REFERENCES chunks (seq) ON DELETE CASCADE,
    user_id   TEXT NOT NULL,
    vector    BLOB NOT NULL   -- float16, little endian, unit length
);
CREATE INDEX rough_vectors_of_user ON rough_vectors (user_id);

-- Deleting an event empties the summaries that mention it: they keep their place in the hierarchy,
-- but no text, until they are made again.
CREATE TRIGGER events_deleted BEFORE DELETE ON contexts
WHEN old.context_type = 'event' AND old.hierarchy_level = 0 AND EXISTS (
    SELECT 1 FROM children WHERE child_seq = old.seq
) BEGIN
    UPDATE contexts SET sha256 = '', keywords = '[]', entities = '[]' WHERE seq IN (
        WITH RECURSIVE told (seq) AS (
            SELECT parent_seq FROM children WHERE child_seq = old.seq
            UNION SELECT c.parent_seq FROM told JOIN children c ON c.child_seq = told.seq
        ) SELECT seq FROM told
    );
    DELETE FROM mentions WHERE context_seq IN (
        SELECT seq FROM contexts
        WHERE user_id = old.user_id AND hierarchy_level > 0 AND sha256 = ''
    );
    DELETE FROM chunks WHERE context_seq IN (
        SELECT seq FROM contexts
        WHERE user_id = old.user_id AND hierarchy_level > 0 AND sha256 = ''
    );
END;

-- Counts deletions: until the file is rewritten, pages may contain copies of deleted data
-- (storage/keeping/erasure.py).
CREATE TRIGGER contexts_unerased AFTER DELETE ON contexts BEGIN
    INSERT INTO meta (key, value) VALUES ('deletions', '1')
        ON CONFLICT (key) DO UPDATE SET value = CAST(value AS INTEGER) + 1;
END;
CREATE TRIGGER chunks_unerased AFTER DELETE ON chunks BEGIN
    INSERT INTO meta (key, value) VALUES ('deletions', '1')
        ON CONFLICT (key) DO UPDATE SET value = CAST(value AS INTEGER) + 1;
END;
CREATE TRIGGER entities_unerased AFTER DELETE ON entities BEGIN
    INSERT INTO meta (key, value) VALUES ('deletions', '1')
        ON CONFLICT (key) DO UPDATE SET value = CAST(value AS INTEGER) + 1;
END;
CREATE TRIGGER relationships_unerased AFTER DELETE ON relationships BEGIN
    INSERT INTO meta (key, value) VALUES ('deletions', '1')
        ON CONFLICT (key) DO UPDATE SET value = CAST(value AS INTEGER) + 1;
END;

-- The values that filters compare: each plain value of the metadata, and of lists in it.
CREATE TABLE labels (
    user_id     TEXT NOT NULL,
    key         TEXT NOT NULL,
    value       TEXT NOT NULL COLLATE NOCASE,
    context_seq INTEGER NOT NULL REFERENCES contexts (seq) ON DELETE CASCADE,
    PRIMARY KEY (user_id, key, value, context_seq)
) WITHOUT ROWID;
CREATE INDEX labels_of_context ON labels (context_seq);

CREATE VIEW labels_in_metadata AS  -- storage.labels.label_of writes the same values
    WITH plain AS (
        SELECT x.seq AS context_seq, x.user_id, each.key,
            iif(each.type = 'array', leaf.type, each.type) AS type,
            iif(each.type = 'array', leaf.atom, each.atom) AS atom
        FROM contexts x,
            json_each(iif(json_valid(x.metadata), x.metadata, '{}')) each,
            json_each(iif(each.type = 'array', each.value, '[0]')) leaf
    )
    SELECT context_seq, user_id, key,
        CASE
            WHEN type IN ('true', 'false') THEN type
            WHEN typeof(atom) <> 'real' THEN atom
            WHEN abs(atom) < 9e15 AND atom = CAST(atom AS INTEGER) THEN CAST(atom AS INTEGER)
            ELSE printf('%.12g', atom)
        END AS value
    FROM plain
    WHERE atom IS NOT NULL AND length(atom) <= 256;

CREATE TRIGGER contexts_labelled AFTER INSERT ON contexts WHEN new.metadata <> '{}' BEGIN
    INSERT OR IGNORE INTO labels (user_id, key, value, context_seq)
        SELECT user_id, key, value, context_seq FROM labels_in_metadata
        WHERE context_seq = new.seq;
END;
CREATE TRIGGER contexts_relabelled AFTER UPDATE OF metadata ON contexts
WHEN new.metadata <> old.metadata BEGIN
    DELETE FROM labels WHERE context_seq = new.seq;
    INSERT OR IGNORE INTO labels (user_id, key, value, context_seq)
        SELECT user_id, key, value, context_seq FROM labels_in_metadata
        WHERE context_seq = new.seq;
END;

-- Recorded calls and messages: layer 1 of memory.
CREATE TABLE sessions (  -- one conversation of one client
    id         TEXT NOT NULL,
    user_id    TEXT NOT NULL,
    device_id  TEXT NOT NULL,
    agent_id   TEXT NOT NULL,
    client     TEXT NOT NULL,  -- its name, as it reports it
    project    TEXT NOT NULL DEFAULT '',  -- its directory; empty: unknown
    start_time REAL NOT NULL,  -- Unix seconds
    last_time  REAL NOT NULL,
    told_until REAL,  -- the last_time that its summary covers; NULL: it needs one
    PRIMARY KEY (user_id, device_id, agent_id, id)
) WITHOUT ROWID;
CREATE INDEX sessions_by_time ON sessions (user_id, last_time);
CREATE INDEX sessions_of_project ON sessions (user_id, project, last_time);

CREATE TABLE entries (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id      TEXT NOT NULL,
    device_id    TEXT NOT NULL,
    agent_id     TEXT NOT NULL,
    session_id   TEXT NOT NULL,
    kind         TEXT NOT NULL CHECK (kind IN ('call', 'message')),
    time         REAL NOT NULL,  -- Unix seconds when it began
    action       TEXT NOT NULL,  -- the tool's name, or the channel of a message
    target       TEXT NOT NULL,  -- what it was about
    arguments    TEXT NOT NULL,  -- JSON object, redacted and cut
    outcome      TEXT NOT NULL,  -- "ok" or the error_type
    said         TEXT NOT NULL,  -- the beginning of the answer or message
    milliseconds REAL NOT NULL,
    importance   REAL NOT NULL,  -- 0 to 10
    is_recall    INTEGER NOT NULL  -- whether it only searched stored data
);
CREATE INDEX entries_of_session ON entries (user_id, session_id, seq);
CREATE INDEX entries_that_tell ON entries (user_id, session_id, seq) WHERE is_recall = 0;
CREATE INDEX messages_of_session ON entries (user_id, session_id, seq)
    WHERE kind = 'message' AND is_recall = 0;
CREATE INDEX entries_by_action ON entries (user_id, action, seq);
CREATE INDEX entries_by_target ON entries (user_id, target, seq);
CREATE INDEX entries_that_matter ON entries (user_id, seq)
    WHERE importance >= 6.0 AND is_recall = 0;

CREATE TABLE entry_contexts (  -- which contexts an entry mentions
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
    entry_seq  INTEGER NOT NULL,  -- triggers delete what depends on it
    is_copy    INTEGER NOT NULL,  -- whether it repeats the entry: both are deleted together
    PRIMARY KEY (memory_seq, entry_seq)
) WITHOUT ROWID;
CREATE INDEX memory_parts_by_entry ON memory_parts (entry_seq);

-- Entries lose the text that mentions a deleted context.
CREATE TRIGGER contexts_untold BEFORE DELETE ON contexts BEGIN
    UPDATE entries SET target = '', arguments = '{}', said = ''
        WHERE seq IN (SELECT entry_seq FROM entry_contexts WHERE context_seq = old.seq);
END;
CREATE TRIGGER entries_unerased AFTER DELETE ON entries BEGIN
    INSERT INTO meta (key, value) VALUES ('deletions', '1')
        ON CONFLICT (key) DO UPDATE SET value = CAST(value AS INTEGER) + 1;
END;

-- What was made from a deleted entry is deleted with it, and so is the text that mentions that; the
-- session is summarized again from its other entries. A trigger does not fire itself, and need not:
-- nothing is made from an entry that mentions what was made from entries.
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
-- Entries lose the text that asked for a deleted entity by its name or an alias.
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

-- The version of a user's library: it grows with every change that can change an answer. Changes
-- that concern every user count under the empty name.
CREATE TABLE versions (
    user_id TEXT PRIMARY KEY,
    version INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TRIGGER contexts_inserted_version AFTER INSERT ON contexts BEGIN
    INSERT INTO versions SELECT new.user_id, 0
        WHERE NOT EXISTS (SELECT 1 FROM versions WHERE user_id = new.user_id);
    UPDATE versions SET version = version + 1 WHERE user_id = new.user_id;
END;
CREATE TRIGGER contexts_updated_version AFTER UPDATE ON contexts BEGIN
    UPDATE versions SET version = version + 1 WHERE user_id = new.user_id;
END;
CREATE TRIGGER contexts_deleted_version AFTER DELETE ON contexts BEGIN
    UPDATE versions SET version = version + 1 WHERE user_id = old.user_id;
END;
CREATE TRIGGER embeddings_inserted_version AFTER INSERT ON embeddings BEGIN
    UPDATE versions SET version = version + 1
        WHERE user_id = (SELECT user_id FROM chunks WHERE seq = new.chunk_seq);
END;
CREATE TRIGGER memories_inserted_version AFTER INSERT ON memories BEGIN
    UPDATE versions SET version = version + 1 WHERE user_id = new.user_id;
END;
CREATE TRIGGER memories_moved_version AFTER UPDATE OF layer ON memories BEGIN
    UPDATE versions SET version = version + 1 WHERE user_id = new.user_id;
END;
CREATE TRIGGER memories_deleted_version AFTER DELETE ON memories BEGIN
    UPDATE versions SET version = version + 1 WHERE user_id = old.user_id;
END;
CREATE TRIGGER entities_inserted_version AFTER INSERT ON entities BEGIN
    INSERT INTO versions SELECT new.user_id, 0
        WHERE NOT EXISTS (SELECT 1 FROM versions WHERE user_id = new.user_id);
    UPDATE versions SET version = version + 1 WHERE user_id = new.user_id;
END;
CREATE TRIGGER entities_updated_version AFTER UPDATE ON entities BEGIN
    UPDATE versions SET version = version + 1 WHERE user_id = new.user_id;
END;
CREATE TRIGGER entities_deleted_version AFTER DELETE ON entities BEGIN
    UPDATE versions SET version = version + 1 WHERE user_id = old.user_id;
END;
-- New entries do not count, because `storage.retrieval.bm25` has them. Entries change only by being
-- deleted or losing text.
CREATE TRIGGER entries_untold_version AFTER UPDATE ON entries BEGIN
    UPDATE versions SET version = version + 1 WHERE user_id = new.user_id;
END;
CREATE TRIGGER entries_deleted_version AFTER DELETE ON entries BEGIN
    INSERT INTO versions SELECT old.user_id, 0
        WHERE NOT EXISTS (SELECT 1 FROM versions WHERE user_id = old.user_id);
    UPDATE versions SET version = version + 1 WHERE user_id = old.user_id;
END;
CREATE TRIGGER models_added_version AFTER INSERT ON models BEGIN
    UPDATE versions SET version = version + 1 WHERE user_id = '';
END;
CREATE TRIGGER models_changed_version AFTER UPDATE OF state ON models BEGIN
    UPDATE versions SET version = version + 1 WHERE user_id = '';
END;
CREATE TRIGGER words_awaited_version AFTER INSERT ON lexical_todo BEGIN
    UPDATE versions SET version = version + 1 WHERE user_id = '';
END;
CREATE TRIGGER words_indexed_version AFTER UPDATE ON lexical_todo BEGIN
    UPDATE versions SET version = version + 1 WHERE user_id = '';
END;
CREATE TRIGGER all_words_indexed_version AFTER DELETE ON lexical_todo BEGIN
    UPDATE versions SET version = version + 1 WHERE user_id = '';
END;
INSERT INTO versions VALUES ('', 1);

-- Approval requests and their answers. A row concerns one call: its digest, identity and root.
-- States: asked (a client shows it), pending (the command line does), approved, running, kept (for
-- the same call when it is repeated with answers), used; denied, told (the caller knows of it).
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
    expires REAL NOT NULL,
    offers TEXT NOT NULL DEFAULT '[]',  -- rules that would allow the call from now on: a JSON list
        -- of lists, the narrowest first
    program TEXT NOT NULL DEFAULT '',  -- of a call within a program: what is offered for the rest
        -- of it (JSON); empty for other calls
    said TEXT NOT NULL DEFAULT ''  -- a person's answer if it is more than yes or no
) WITHOUT ROWID;

CREATE INDEX approvals_digest ON approvals (digest);

-- Rules that a person granted for a limited time.
CREATE TABLE grants (
    grant_id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL,
    device_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    root TEXT NOT NULL,
    rule TEXT NOT NULL,
    client TEXT NOT NULL,  -- the one that asked; the rule holds for it alone
    granted_by TEXT NOT NULL,
    created REAL NOT NULL,
    expires REAL NOT NULL
) WITHOUT ROWID;

-- Terminals that show the pending requests at the moment.
CREATE TABLE approval_watchers (
    watcher TEXT PRIMARY KEY,
    seen REAL NOT NULL
) WITHOUT ROWID;

-- To-do lists, one for each session; deleted with it.
CREATE TABLE todos (
    user_id     TEXT NOT NULL,
    device_id   TEXT NOT NULL,
    agent_id    TEXT NOT NULL,
    session_id  TEXT NOT NULL,
    position    INTEGER NOT NULL,  -- from 0
    id          TEXT NOT NULL,
    content     TEXT NOT NULL,
    status      TEXT NOT NULL CHECK (status IN ('pending', 'in_progress', 'completed')),
    active_form TEXT NOT NULL,  -- its wording while in progress; empty: `content`
    PRIMARY KEY (user_id, device_id, agent_id, session_id, position)
) WITHOUT ROWID;

CREATE TRIGGER sessions_forgotten AFTER DELETE ON sessions BEGIN
    DELETE FROM todos WHERE user_id = old.user_id AND device_id = old.device_id
        AND agent_id = old.agent_id AND session_id = old.id;
END;

-- A cache of analyses of tools' texts, by the hash of their input.
CREATE TABLE tool_analyses (
    key   BLOB PRIMARY KEY,
    value BLOB NOT NULL,
    used  INTEGER NOT NULL  -- day since 1970 of its last use
);

-- Tools described by files: search finds them, but they cannot be called.
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

-- The last listing of each upstream server.
CREATE TABLE upstream_listings (
    server      TEXT PRIMARY KEY,
    fingerprint TEXT NOT NULL,  -- of its settings: a changed command means another server
    listing     TEXT NOT NULL,  -- JSON
    listed_at   REAL NOT NULL
);

-- The accepted definition of each upstream tool.
CREATE TABLE tool_pins (
    server     TEXT NOT NULL,
    tool       TEXT NOT NULL,
    sha256     TEXT NOT NULL,
    definition TEXT NOT NULL,     -- JSON, so that a change can be shown
    approved   INTEGER NOT NULL,  -- 1: by a person; 0: it was the first
    pinned_at  REAL NOT NULL,
    PRIMARY KEY (server, tool)
) WITHOUT ROWID;

-- Plans of agents; a plan is deleted with the session that made it.
CREATE TABLE plans (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id      TEXT NOT NULL,
    device_id    TEXT NOT NULL,
    agent_id     TEXT NOT NULL,
    id           TEXT NOT NULL,
    session_id   TEXT NOT NULL,  -- the one that made it
    continued_in TEXT NOT NULL,  -- the one that changed it last
    goal         TEXT NOT NULL,
    reasoning    TEXT NOT NULL,
    status       TEXT NOT NULL CHECK (status IN ('open', 'completed', 'abandoned')),
    message      TEXT NOT NULL,  -- the closing message
    output       TEXT NOT NULL,  -- the result
    create_time  REAL NOT NULL,  -- Unix seconds
    update_time  REAL NOT NULL,
    progress     TEXT NOT NULL DEFAULT '[]',  -- [[status, note, session_id], …]
    steps        TEXT NOT NULL DEFAULT '[]',  -- [[id, title, detail, blocked_by], …]
    UNIQUE (user_id, device_id, agent_id, id)
);
CREATE INDEX plans_of_session ON plans (user_id, session_id);
CREATE INDEX plans_continued ON plans (user_id, continued_in);

CREATE TRIGGER plans_forgotten AFTER DELETE ON sessions BEGIN
    DELETE FROM plans WHERE user_id = old.user_id AND device_id = old.device_id
        AND agent_id = old.agent_id AND session_id = old.id;
END;

-- Tools that agents wrote. Every version stays; the newest of a name is used, unless removed.
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

-- Calls that continue in the background. States: working; completed, failed, cancelled; lost, if
-- the process that worked on it died.
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
    heard     REAL NOT NULL,  -- when it last reported progress
    awaits    TEXT NOT NULL DEFAULT '',  -- what a person or a model must answer first
    unwanted  INTEGER NOT NULL DEFAULT 0,  -- whether cancellation was requested
    result    TEXT  -- JSON
);

CREATE INDEX jobs_state ON jobs (state, process);

-- Work delegated to other agents. A row describes what an agent's token permits: its depth, the
-- tools it may call, and until when. Rows of one root share its ceilings.
CREATE TABLE delegations (
    id             TEXT PRIMARY KEY,
    digest         BLOB NOT NULL UNIQUE,  -- SHA-256 of the token, which only the agent has
    root           TEXT NOT NULL,  -- the first delegation of the chain; may be its own id
    parent         TEXT NOT NULL,  -- the delegation whose agent requested it; may be empty
    depth          INTEGER NOT NULL,  -- 1 of the root
    agent          TEXT NOT NULL,
    user_id        TEXT NOT NULL,
    device_id      TEXT NOT NULL,
    agent_id       TEXT NOT NULL,
    parent_session TEXT NOT NULL,  -- the session of the delegating call
    session_id     TEXT NOT NULL UNIQUE,  -- in which the agent's own calls are recorded
    tools          TEXT NOT NULL,  -- JSON: the tool sets that its calls are within
    began          REAL NOT NULL,
    ends           REAL NOT NULL,  -- then the token is invalid
    seconds        REAL,  -- its duration; NULL while it runs
    reserved_cost  REAL NOT NULL,  -- US dollars reserved for it
    cost           REAL NOT NULL DEFAULT 0,  -- US dollars, as the agent reported
    outcome        TEXT NOT NULL DEFAULT ''  -- empty while it runs
) WITHOUT ROWID;

CREATE INDEX delegations_root ON delegations (root);

-- Former facts of an entity or of the user.
CREATE TABLE former_facts (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id    TEXT NOT NULL,
    device_id  TEXT NOT NULL,
    agent_id   TEXT NOT NULL,
    entity_seq INTEGER REFERENCES entities (seq) ON DELETE CASCADE,  -- NULL means the user
    name       TEXT NOT NULL,
    value      TEXT NOT NULL,  -- JSON
    until      REAL NOT NULL   -- Unix seconds when it was replaced
);
CREATE INDEX former_facts_of_subject ON former_facts (user_id, device_id, agent_id, entity_seq);
CREATE INDEX former_facts_of_entity ON former_facts (entity_seq);
CREATE TRIGGER former_facts_unerased AFTER DELETE ON former_facts BEGIN
    INSERT INTO meta (key, value) VALUES ('deletions', '1')
        ON CONFLICT (key) DO UPDATE SET value = CAST(value AS INTEGER) + 1;
END;
-- A card is the context that storage/people/cards.py makes of a profile or an entity, so that
-- searches find it. These must be made again.
CREATE TABLE stale_cards (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    entity_seq INTEGER REFERENCES entities (seq) ON DELETE CASCADE,  -- NULL means a profile
    user_id    TEXT NOT NULL DEFAULT '',  -- of a profile
    device_id  TEXT NOT NULL DEFAULT '',
    agent_id   TEXT NOT NULL DEFAULT ''
);
CREATE INDEX stale_cards_of_entity ON stale_cards (entity_seq);

CREATE TRIGGER entities_inserted_card AFTER INSERT ON entities BEGIN
    INSERT INTO stale_cards (entity_seq) VALUES (new.seq);
END;
CREATE TRIGGER entities_updated_card AFTER UPDATE ON entities BEGIN
    INSERT INTO stale_cards (entity_seq) VALUES (new.seq);
END;
CREATE TRIGGER entities_deleted_card AFTER DELETE ON entities BEGIN
    DELETE FROM contexts WHERE user_id = old.user_id AND raw_type = 'entity'
        AND raw_id = CAST(old.seq AS TEXT) AND context_type = 'entity';
END;
CREATE TRIGGER relationships_inserted_card AFTER INSERT ON relationships BEGIN
    INSERT INTO stale_cards (entity_seq) VALUES (new.source_seq), (new.target_seq);
END;
CREATE TRIGGER relationships_updated_card AFTER UPDATE ON relationships BEGIN
    INSERT INTO stale_cards (entity_seq) VALUES (new.source_seq), (new.target_seq);
END;
CREATE TRIGGER relationships_deleted_card AFTER DELETE ON relationships BEGIN
    INSERT INTO stale_cards (entity_seq)
        SELECT seq FROM entities WHERE seq IN (old.source_seq, old.target_seq);
END;
CREATE TRIGGER profiles_inserted_card AFTER INSERT ON profiles BEGIN
    INSERT INTO stale_cards (user_id, device_id, agent_id)
        VALUES (new.user_id, new.device_id, new.agent_id);
END;
CREATE TRIGGER profiles_updated_card AFTER UPDATE ON profiles BEGIN
    INSERT INTO stale_cards (user_id, device_id, agent_id)
        VALUES (new.user_id, new.device_id, new.agent_id);
END;
CREATE TRIGGER former_facts_inserted_card AFTER INSERT ON former_facts
WHEN new.entity_seq IS NOT NULL BEGIN
    INSERT INTO stale_cards (entity_seq) VALUES (new.entity_seq);
END;
CREATE TRIGGER former_facts_of_user_inserted_card AFTER INSERT ON former_facts
WHEN new.entity_seq IS NULL BEGIN
    INSERT INTO stale_cards (user_id, device_id, agent_id)
        VALUES (new.user_id, new.device_id, new.agent_id);
END;

-- Conversations that clients' hooks capture are one document for each session, whose raw_type is
-- 'conversation' and whose raw_id is the session's id. A deleted session takes its own with it.
CREATE TRIGGER sessions_unheard AFTER DELETE ON sessions BEGIN
    DELETE FROM contexts WHERE user_id = old.user_id AND device_id = old.device_id
        AND agent_id = old.agent_id AND raw_type = 'conversation' AND raw_id = old.id
        AND context_type = 'document';
END;

-- A deleted message takes its turn of the conversation with it, and the title made from it. The
-- heading of a turn is its speaker and its time.
CREATE TRIGGER entries_unsaid BEFORE DELETE ON entries
WHEN old.kind = 'message' AND EXISTS (
    SELECT 1 FROM entry_contexts l JOIN contexts x ON x.seq = l.context_seq
    WHERE l.entry_seq = old.seq AND x.raw_type = 'conversation'
) BEGIN
    UPDATE contexts SET title = 'Conversation' WHERE seq IN (
        SELECT c.context_seq FROM chunks c JOIN entry_contexts l ON l.context_seq = c.context_seq
        WHERE l.entry_seq = old.seq AND c.position = 0 AND c.heading =
            iif(old.action LIKE '%:prompt', 'User', replace(old.action, ':answer', ''))
            || ', ' || strftime('%Y-%m-%dT%H:%M:%SZ', CAST(old.time AS INTEGER), 'unixepoch')
    ) AND raw_type = 'conversation';
    DELETE FROM chunks WHERE seq IN (
        SELECT c.seq FROM chunks c JOIN entry_contexts l ON l.context_seq = c.context_seq
        JOIN contexts x ON x.seq = l.context_seq
        WHERE l.entry_seq = old.seq AND x.raw_type = 'conversation' AND c.heading =
            iif(old.action LIKE '%:prompt', 'User', replace(old.action, ':answer', ''))
            || ', ' || strftime('%Y-%m-%dT%H:%M:%SZ', CAST(old.time AS INTEGER), 'unixepoch')
    );
END;
