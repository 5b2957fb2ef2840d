-- A forgotten event is not told on: the summaries that told of it keep their place in the hierarchy,
-- but no word, until they are made anew.
CREATE TRIGGER events_deleted BEFORE DELETE ON contexts
WHEN old.context_type = 'event' AND old.hierarchy_level = 0 AND EXISTS (
    SELECT 1 FROM children WHERE child_seq = old.seq
) BEGIN
    UPDATE contexts SET sha256 = '', keywords = '[]', entities = '[]' WHERE seq IN (
        WITH RECURSIVE told (seq) AS (
            SELECT parent_seq FROM children WHERE child_seq = old.seq
            UNION SELECT c.parent_seq FROM told JOIN children c ON c.child_seq = told.seq
        ) SELECT seq FROM told
    );
    DELETE FROM mentions WHERE context_seq IN (
        SELECT seq FROM contexts
        WHERE user_id = old.user_id AND hierarchy_level > 0 AND sha256 = ''
    );
    DELETE FROM chunks WHERE context_seq IN (
        SELECT seq FROM contexts
        WHERE user_id = old.user_id AND hierarchy_level > 0 AND sha256 = ''
    );
END;
