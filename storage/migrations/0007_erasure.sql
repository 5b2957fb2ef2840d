-- How often something was deleted: until the file is next written anew, pages may hold copies of it
-- (see storage/keeping/erasure.py).
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
