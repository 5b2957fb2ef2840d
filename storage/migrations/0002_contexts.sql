-- A context is one whole thing that is kept: a document, a piece of knowledge, an event. Its chunks
-- are the texts that it is found by.
DROP TRIGGER contexts_deleted;
ALTER TABLE contexts RENAME TO old_contexts;
ALTER TABLE mentions RENAME TO old_mentions;
ALTER TABLE embeddings RENAME TO old_embeddings;
ALTER TABLE embed_queue RENAME TO old_embed_queue;
DROP INDEX contexts_of_document;
DROP INDEX contexts_of_user;
DROP INDEX mentions_of_context;

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
    parent_seq      INTEGER REFERENCES contexts (seq) ON DELETE SET NULL
);
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

CREATE TABLE children (  -- what a summary was made from
    parent_seq INTEGER NOT NULL REFERENCES contexts (seq) ON DELETE CASCADE,
    child_seq  INTEGER NOT NULL REFERENCES contexts (seq) ON DELETE CASCADE,
    PRIMARY KEY (parent_seq, child_seq)
) WITHOUT ROWID;
CREATE INDEX children_of_child ON children (child_seq);

-- AUTOINCREMENT: a seq names one text for ever, in the lexical and in the vector index too.
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

CREATE TABLE embeddings (
    chunk_seq INTEGER PRIMARY KEY REFERENCES chunks (seq) ON DELETE CASCADE,
    vector    BLOB NOT NULL   -- float32, little endian, unit length
);
CREATE TABLE embed_queue (
    chunk_seq INTEGER PRIMARY KEY REFERENCES chunks (seq) ON DELETE CASCADE,
    user_id   TEXT NOT NULL
);
CREATE INDEX embed_queue_of_user ON embed_queue (user_id);
ALTER TABLE vector_outbox RENAME COLUMN context_seq TO chunk_seq;

INSERT INTO contexts
    SELECT seq, lower(hex(randomblob(16))), 'document', user_id, device_id, agent_id, raw_type,
        raw_id, title, '', '[]', entities, metadata, 0, 0, create_time, update_time, event_time,
        media_type, file_path, sha256, 0, 0, '', NULL, NULL
    FROM documents;
INSERT INTO chunks
    SELECT seq, document_seq, user_id, position, start, heading, content FROM old_contexts;
INSERT INTO mentions
    SELECT DISTINCT c.user_id, m.folded, c.document_seq, min(m.name)
    FROM old_mentions m JOIN old_contexts c ON c.seq = m.context_seq
    GROUP BY c.user_id, m.folded, c.document_seq;
INSERT INTO embeddings SELECT context_seq, vector FROM old_embeddings;
INSERT INTO embed_queue
    SELECT q.context_seq, c.user_id
    FROM old_embed_queue q JOIN old_contexts c ON c.seq = q.context_seq;
-- Texts that are gone keep their numbers.
DELETE FROM sqlite_sequence WHERE name = 'chunks';
UPDATE sqlite_sequence SET name = 'chunks' WHERE name = 'old_contexts';
DROP TABLE old_embed_queue;
DROP TABLE old_embeddings;
DROP TABLE old_mentions;
DROP TABLE old_contexts;
DROP TABLE documents;

-- A deletion reaches every index, whichever statement or cascade caused it.
CREATE TRIGGER chunks_deleted AFTER DELETE ON chunks BEGIN
    DELETE FROM lexical WHERE rowid = old.seq;
    INSERT INTO vector_outbox (chunk_seq, user_id) VALUES (old.seq, old.user_id);
END;
