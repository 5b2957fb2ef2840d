-- Vectors of several models side by side: the current one's, by which searches compare, and those of
-- the next one, which takes over when it has all.
CREATE TABLE models (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,  -- names a model's vectors for ever, in Chroma too
    scheme     TEXT NOT NULL,     -- the embedder's model_id
    state      TEXT NOT NULL CHECK (state IN ('current', 'next', 'old')),
    dimensions INTEGER            -- NULL until something is embedded
);
CREATE UNIQUE INDEX models_in_use ON models (state) WHERE state <> 'old';

-- The scheme of the first schema ends in the number of dimensions: all-MiniLM-L6-v2-onnx-int8/384.
INSERT INTO models (scheme, state, dimensions)
    SELECT rtrim(rtrim(value, '0123456789'), '/'), 'current',
        (SELECT length(vector) / 4 FROM embeddings LIMIT 1)
    FROM meta WHERE key = 'embedder';
DELETE FROM meta WHERE key = 'embedder';

ALTER TABLE embeddings RENAME TO old_embeddings;
ALTER TABLE embed_queue RENAME TO old_embed_queue;
DROP INDEX embed_queue_of_user;

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
    PRIMARY KEY (chunk_seq, model_seq)
) WITHOUT ROWID;
CREATE INDEX embed_queue_of_user ON embed_queue (model_seq, user_id);
INSERT INTO embeddings SELECT e.chunk_seq, m.seq, e.vector FROM old_embeddings e, models m;
INSERT INTO embed_queue SELECT q.chunk_seq, m.seq, q.user_id FROM old_embed_queue q, models m;
DROP TABLE old_embed_queue;
DROP TABLE old_embeddings;

-- NULL is news for every model: the chunk is gone.
ALTER TABLE vector_outbox ADD COLUMN model_seq INTEGER;
