-- How often something was deleted, and how often it had been when the file was last written anew:
-- until then pages may hold copies of what was deleted (see storage/erasure.py).
INSERT INTO meta (key, value) VALUES ('deletions', '0'), ('erased_deletions', '0');

CREATE TRIGGER contexts_unerased AFTER DELETE ON contexts BEGIN
    UPDATE meta SET value = CAST(value AS INTEGER) + 1 WHERE key = 'deletions';
END;
CREATE TRIGGER chunks_unerased AFTER DELETE ON chunks BEGIN
    UPDATE meta SET value = CAST(value AS INTEGER) + 1 WHERE key = 'deletions';
END;
CREATE TRIGGER entities_unerased AFTER DELETE ON entities BEGIN
    UPDATE meta SET value = CAST(value AS INTEGER) + 1 WHERE key = 'deletions';
END;
CREATE TRIGGER relationships_unerased AFTER DELETE ON relationships BEGIN
    UPDATE meta SET value = CAST(value AS INTEGER) + 1 WHERE key = 'deletions';
END;
