-- The steps of a plan are read and checked together: a row for each costs more than it tells.
ALTER TABLE plans ADD COLUMN progress TEXT NOT NULL DEFAULT '[]';  -- [[status, note, session_id], …]
ALTER TABLE plans ADD COLUMN steps TEXT NOT NULL DEFAULT '[]';  -- [[id, title, detail, blocked_by], …]
UPDATE plans SET
    progress = (SELECT json_group_array(json_array(s.status, s.note, s.session_id)) FROM
        (SELECT * FROM plan_steps WHERE plan_seq = plans.seq ORDER BY position) s),
    steps = (SELECT json_group_array(json_array(s.id, s.title, s.detail, json(s.blocked_by))) FROM
        (SELECT * FROM plan_steps WHERE plan_seq = plans.seq ORDER BY position) s);
DROP TABLE plan_steps;
