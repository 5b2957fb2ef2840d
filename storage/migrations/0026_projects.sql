-- The project of a session, and conversations that clients' hooks capture: one document for each
-- session, whose raw_type is 'conversation' and whose raw_id is the session's id.
ALTER TABLE sessions ADD COLUMN project TEXT NOT NULL DEFAULT '';  -- its directory; empty: unknown
CREATE INDEX sessions_of_project ON sessions (user_id, project, last_time);

-- A deleted session takes its conversation with it.
CREATE TRIGGER sessions_unheard AFTER DELETE ON sessions BEGIN
    DELETE FROM contexts WHERE user_id = old.user_id AND device_id = old.device_id
        AND agent_id = old.agent_id AND raw_type = 'conversation' AND raw_id = old.id
        AND context_type = 'document';
END;

-- A deleted message takes its turn of the conversation with it, and the title made from it. The
-- heading of a turn is its speaker and its time.
CREATE TRIGGER entries_unsaid BEFORE DELETE ON entries
WHEN old.kind = 'message' AND EXISTS (
    SELECT 1 FROM entry_contexts l JOIN contexts x ON x.seq = l.context_seq
    WHERE l.entry_seq = old.seq AND x.raw_type = 'conversation'
) BEGIN
    UPDATE contexts SET title = 'Conversation' WHERE seq IN (
        SELECT c.context_seq FROM chunks c JOIN entry_contexts l ON l.context_seq = c.context_seq
        WHERE l.entry_seq = old.seq AND c.position = 0 AND c.heading =
            iif(old.action LIKE '%:prompt', 'User', replace(old.action, ':answer', ''))
            || ', ' || strftime('%Y-%m-%dT%H:%M:%SZ', old.time, 'unixepoch')
    ) AND raw_type = 'conversation';
    DELETE FROM chunks WHERE seq IN (
        SELECT c.seq FROM chunks c JOIN entry_contexts l ON l.context_seq = c.context_seq
        JOIN contexts x ON x.seq = l.context_seq
        WHERE l.entry_seq = old.seq AND x.raw_type = 'conversation' AND c.heading =
            iif(old.action LIKE '%:prompt', 'User', replace(old.action, ':answer', ''))
            || ', ' || strftime('%Y-%m-%dT%H:%M:%SZ', old.time, 'unixepoch')
    );
END;
