-- What agents work towards step by step; a plan is forgotten with the session that made it.
CREATE TABLE plans (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id      TEXT NOT NULL,
    device_id    TEXT NOT NULL,
    agent_id     TEXT NOT NULL,
    id           TEXT NOT NULL,
    session_id   TEXT NOT NULL,  -- the one that made it
    continued_in TEXT NOT NULL,  -- the one that changed it last
    goal         TEXT NOT NULL,
    reasoning    TEXT NOT NULL,
    status       TEXT NOT NULL CHECK (status IN ('open', 'completed', 'abandoned')),
    message      TEXT NOT NULL,  -- what is said of it where it is closed
    output       TEXT NOT NULL,  -- what came of it
    create_time  REAL NOT NULL,  -- Unix seconds
    update_time  REAL NOT NULL,
    UNIQUE (user_id, device_id, agent_id, id)
);
CREATE INDEX plans_of_session ON plans (user_id, session_id);
CREATE INDEX plans_continued ON plans (user_id, continued_in);

CREATE TABLE plan_steps (
    plan_seq   INTEGER NOT NULL REFERENCES plans (seq) ON DELETE CASCADE,
    position   INTEGER NOT NULL,  -- in the plan; those that were removed leave gaps
    id         TEXT NOT NULL,
    title      TEXT NOT NULL,
    status     TEXT NOT NULL
        CHECK (status IN ('pending', 'in_progress', 'completed', 'failed', 'skipped')),
    session_id TEXT NOT NULL,  -- the one that gave it its status; empty of a new step
    blocked_by TEXT NOT NULL,  -- JSON array of ids
    note       TEXT NOT NULL,
    detail     TEXT NOT NULL,
    PRIMARY KEY (plan_seq, position),
    UNIQUE (plan_seq, id)
) WITHOUT ROWID;

CREATE TRIGGER plans_forgotten AFTER DELETE ON sessions BEGIN
    DELETE FROM plans WHERE user_id = old.user_id AND device_id = old.device_id
        AND agent_id = old.agent_id AND session_id = old.id;
END;
