-- Whether a context is a conversation: its chunks are turns, which are found by each other.
ALTER TABLE contexts ADD COLUMN of_turns INTEGER NOT NULL DEFAULT 0;
