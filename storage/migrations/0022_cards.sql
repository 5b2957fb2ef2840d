-- What was known before something else was: of an entity, or of the user.
CREATE TABLE former_facts (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id    TEXT NOT NULL,
    device_id  TEXT NOT NULL,
    agent_id   TEXT NOT NULL,
    entity_seq INTEGER REFERENCES entities (seq) ON DELETE CASCADE,  -- NULL means the user
    name       TEXT NOT NULL,
    value      TEXT NOT NULL,  -- JSON
    until      REAL NOT NULL   -- Unix seconds when something else took its place
);
CREATE INDEX former_facts_of_subject ON former_facts (user_id, device_id, agent_id, entity_seq);
CREATE INDEX former_facts_of_entity ON former_facts (entity_seq);
CREATE TRIGGER former_facts_unerased AFTER DELETE ON former_facts BEGIN
    INSERT INTO meta (key, value) VALUES ('deletions', '1')
        ON CONFLICT (key) DO UPDATE SET value = CAST(value AS INTEGER) + 1;
END;
ALTER TABLE relationships ADD COLUMN until REAL;  -- when it ended; NULL while it holds

-- A card is the text that a profile or an entity is found by: a context that storage/people/cards.py
-- makes of it. These have to be made anew.
CREATE TABLE stale_cards (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    entity_seq INTEGER REFERENCES entities (seq) ON DELETE CASCADE,  -- NULL means a profile
    user_id    TEXT NOT NULL DEFAULT '',  -- of a profile
    device_id  TEXT NOT NULL DEFAULT '',
    agent_id   TEXT NOT NULL DEFAULT ''
);
CREATE INDEX stale_cards_of_entity ON stale_cards (entity_seq);
INSERT INTO stale_cards (entity_seq) SELECT seq FROM entities;
INSERT INTO stale_cards (user_id, device_id, agent_id)
    SELECT user_id, device_id, agent_id FROM profiles;

CREATE TRIGGER entities_inserted_card AFTER INSERT ON entities BEGIN
    INSERT INTO stale_cards (entity_seq) VALUES (new.seq);
END;
CREATE TRIGGER entities_updated_card AFTER UPDATE ON entities BEGIN
    INSERT INTO stale_cards (entity_seq) VALUES (new.seq);
END;
CREATE TRIGGER entities_deleted_card AFTER DELETE ON entities BEGIN
    DELETE FROM contexts WHERE user_id = old.user_id AND raw_type = 'entity'
        AND raw_id = CAST(old.seq AS TEXT) AND context_type = 'entity';
END;
CREATE TRIGGER relationships_inserted_card AFTER INSERT ON relationships BEGIN
    INSERT INTO stale_cards (entity_seq) VALUES (new.source_seq), (new.target_seq);
END;
CREATE TRIGGER relationships_updated_card AFTER UPDATE ON relationships BEGIN
    INSERT INTO stale_cards (entity_seq) VALUES (new.source_seq), (new.target_seq);
END;
CREATE TRIGGER relationships_deleted_card AFTER DELETE ON relationships BEGIN
    INSERT INTO stale_cards (entity_seq)
        SELECT seq FROM entities WHERE seq IN (old.source_seq, old.target_seq);
END;
CREATE TRIGGER profiles_inserted_card AFTER INSERT ON profiles BEGIN
    INSERT INTO stale_cards (user_id, device_id, agent_id)
        VALUES (new.user_id, new.device_id, new.agent_id);
END;
CREATE TRIGGER profiles_updated_card AFTER UPDATE ON profiles BEGIN
    INSERT INTO stale_cards (user_id, device_id, agent_id)
        VALUES (new.user_id, new.device_id, new.agent_id);
END;
CREATE TRIGGER former_facts_inserted_card AFTER INSERT ON former_facts
WHEN new.entity_seq IS NOT NULL BEGIN
    INSERT INTO stale_cards (entity_seq) VALUES (new.entity_seq);
END;
CREATE TRIGGER former_facts_of_user_inserted_card AFTER INSERT ON former_facts
WHEN new.entity_seq IS NULL BEGIN
    INSERT INTO stale_cards (user_id, device_id, agent_id)
        VALUES (new.user_id, new.device_id, new.agent_id);
END;
