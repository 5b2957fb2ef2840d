-- The lexical index is our own (see storage/index/postings.py). FTS5 had no idf for common words, read the
-- postings of every user for each search, and took 100 ms for one among 50,000 chunks.
DROP TRIGGER chunks_deleted;
DROP TABLE lexical_terms;
DROP TABLE lexical;

-- Chunks whose postings stand in no segment yet. A term is the hash of its text.
CREATE TABLE lexical_fresh (
    chunk_seq INTEGER PRIMARY KEY,
    user_id   TEXT NOT NULL,
    length    INTEGER NOT NULL,
    terms     BLOB NOT NULL,  -- int64 each
    counts    BLOB NOT NULL   -- uint16 each
);
CREATE INDEX lexical_fresh_of_user ON lexical_fresh (user_id);

-- Segments never change; one that does not live is being written, or is waste.
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

-- The postings of some terms that follow each other in order of their hashes, so many of each. A
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

-- Ranges of chunks that are not indexed yet: today all that there are.
CREATE TABLE lexical_todo (
    first_seq INTEGER NOT NULL,
    last_seq  INTEGER NOT NULL
);
INSERT INTO lexical_todo
    SELECT first_seq, last_seq
    FROM (SELECT min(seq) AS first_seq, max(seq) AS last_seq FROM chunks)
    WHERE first_seq IS NOT NULL;

-- A deletion reaches every index, whichever statement or cascade caused it.
CREATE TRIGGER chunks_deleted AFTER DELETE ON chunks BEGIN
    INSERT INTO lexical_dead (chunk_seq, user_id, time)
        SELECT old.seq, old.user_id, CAST(strftime('%s', 'now') AS INTEGER)
        WHERE NOT EXISTS (SELECT 1 FROM lexical_fresh WHERE chunk_seq = old.seq)
        AND NOT EXISTS (SELECT 1 FROM lexical_todo WHERE old.seq BETWEEN first_seq AND last_seq);
    DELETE FROM lexical_fresh WHERE chunk_seq = old.seq;
    INSERT INTO vector_outbox (chunk_seq, user_id) VALUES (old.seq, old.user_id);
END;

-- What one device or agent kept, for the filter by identity.
CREATE INDEX contexts_by_identity ON contexts (user_id, device_id, agent_id);

-- What SQLite is to think of the indexes, whatever they hold: that a user has many contexts, of
-- which few share the rest. Without it, it takes a user's contexts for ten and goes through them
-- all (https://sqlite.org/optoverview.html#manctrl).
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
