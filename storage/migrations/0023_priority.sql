-- What was added by itself is embedded before what is one of many.
ALTER TABLE embed_queue ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;  -- of storage.index.embed_queue
UPDATE embed_queue SET priority = 2;
CREATE INDEX embed_queue_by_priority ON embed_queue (model_seq, priority);
