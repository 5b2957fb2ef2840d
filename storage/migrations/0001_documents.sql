-- Facts about the data directory itself: the embedder's scheme, the vector index's generation.
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE documents (
    seq         INTEGER PRIMARY KEY,
    user_id     TEXT NOT NULL,
    device_id   TEXT NOT NULL,
    agent_id    TEXT NOT NULL,
    raw_type    TEXT NOT NULL,
    raw_id      TEXT NOT NULL,
    title       TEXT NOT NULL,
    media_type  TEXT NOT NULL,
    file_path   TEXT NOT NULL,
    sha256      TEXT NOT NULL,
    create_time REAL NOT NULL,
    update_time REAL NOT NULL,
    event_time  REAL NOT NULL,
    entities    TEXT NOT NULL,  -- JSON array of names
    metadata    TEXT NOT NULL,  -- JSON object
    UNIQUE (user_id, device_id, agent_id, raw_type, raw_id)
);
CREATE INDEX documents_newest ON documents (user_id, update_time DESC, seq DESC);

-- AUTOINCREMENT: a seq names one text for ever, in the lexical and in the vector index too.
CREATE TABLE contexts (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    id           TEXT NOT NULL UNIQUE,
    context_type TEXT NOT NULL,
    document_seq INTEGER NOT NULL REFERENCES documents (seq) ON DELETE CASCADE,
    position     INTEGER NOT NULL,
    start        INTEGER NOT NULL,  -- where the content begins in the document's text
    heading      TEXT NOT NULL,
    content      TEXT NOT NULL,
    user_id      TEXT NOT NULL,
    device_id    TEXT NOT NULL,
    agent_id     TEXT NOT NULL,
    create_time  REAL NOT NULL,
    update_time  REAL NOT NULL,
    event_time   REAL NOT NULL
);
CREATE INDEX contexts_of_document ON contexts (document_seq, position);
CREATE INDEX contexts_of_user ON contexts (user_id, context_type);

CREATE TABLE mentions (
    folded      TEXT NOT NULL,  -- the name, case and accents folded
    context_seq INTEGER NOT NULL REFERENCES contexts (seq) ON DELETE CASCADE,
    name        TEXT NOT NULL,
    PRIMARY KEY (folded, context_seq)
) WITHOUT ROWID;
CREATE INDEX mentions_of_context ON mentions (context_seq);

CREATE TABLE embeddings (
    context_seq INTEGER PRIMARY KEY REFERENCES contexts (seq) ON DELETE CASCADE,
    vector      BLOB NOT NULL   -- float32, little endian, unit length
);

-- Columns hold the terms of storage/tokenize.py, separated by spaces; rowid is contexts.seq.
CREATE VIRTUAL TABLE lexical USING fts5 (title, body, tokenize = 'ascii');
CREATE VIRTUAL TABLE lexical_terms USING fts5vocab (lexical, 'row');

-- What the indexer has still to do: texts without a vector, and contexts whose vector the index has
-- to bring to what `embeddings` says when it does so: there, or gone.
CREATE TABLE embed_queue (
    context_seq INTEGER PRIMARY KEY REFERENCES contexts (seq) ON DELETE CASCADE
);
CREATE TABLE vector_outbox (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    context_seq INTEGER NOT NULL,
    user_id     TEXT NOT NULL
);

-- A deletion reaches every index, whichever statement or cascade caused it.
CREATE TRIGGER contexts_deleted AFTER DELETE ON contexts BEGIN
    DELETE FROM lexical WHERE rowid = old.seq;
    INSERT INTO vector_outbox (context_seq, user_id) VALUES (old.seq, old.user_id);
END;
