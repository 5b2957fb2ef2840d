-- What an agent means to do, one list a session; it is forgotten with the session.
CREATE TABLE todos (
    user_id     TEXT NOT NULL,
    device_id   TEXT NOT NULL,
    agent_id    TEXT NOT NULL,
    session_id  TEXT NOT NULL,
    position    INTEGER NOT NULL,  -- from 0
    id          TEXT NOT NULL,
    content     TEXT NOT NULL,
    status      TEXT NOT NULL CHECK (status IN ('pending', 'in_progress', 'completed')),
    active_form TEXT NOT NULL,  -- how it is said while it is done; empty where it is said as ever
    PRIMARY KEY (user_id, device_id, agent_id, session_id, position)
) WITHOUT ROWID;

CREATE TRIGGER sessions_forgotten AFTER DELETE ON sessions BEGIN
    DELETE FROM todos WHERE user_id = old.user_id AND device_id = old.device_id
        AND agent_id = old.agent_id AND session_id = old.id;
END;
