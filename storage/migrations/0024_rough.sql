-- Until a chunk of many has its vector it is found by a rough one, which is made in no time.
CREATE TABLE rough_vectors (
    chunk_seq INTEGER PRIMARY KEY REFERENCES chunks (seq) ON DELETE CASCADE,
    user_id   TEXT NOT NULL,
    vector    BLOB NOT NULL   -- float16, little endian, unit length
);
CREATE INDEX rough_vectors_of_user ON rough_vectors (user_id);
