-- Which version of a user's library a search saw: it grows with whatever can change an answer. What
-- concerns every user counts under the empty name.
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
-- What is recorded meanwhile does not count: `storage.memory.recent` tells of it. Nothing recorded
-- changes but by being forgotten.
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
INSERT INTO versions
    SELECT user_id, 1 FROM contexts WHERE user_id <> ''
    UNION SELECT user_id, 1 FROM entities WHERE user_id <> '';
INSERT INTO versions VALUES ('', 1);
