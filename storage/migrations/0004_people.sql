CREATE TABLE profiles (  -- what is known of the user, once for each identity
    user_id     TEXT NOT NULL,
    device_id   TEXT NOT NULL,
    agent_id    TEXT NOT NULL,
    summary     TEXT NOT NULL,
    facts       TEXT NOT NULL,  -- JSON object
    metadata    TEXT NOT NULL,  -- JSON object
    create_time REAL NOT NULL,
    update_time REAL NOT NULL,
    PRIMARY KEY (user_id, device_id, agent_id)
) WITHOUT ROWID;

CREATE TABLE entities (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id     TEXT NOT NULL,
    device_id   TEXT NOT NULL,
    agent_id    TEXT NOT NULL,
    folded      TEXT NOT NULL,  -- the name, case and accents folded
    entity_type TEXT NOT NULL,
    name        TEXT NOT NULL,
    summary     TEXT NOT NULL,
    aliases     TEXT NOT NULL,  -- JSON array
    metadata    TEXT NOT NULL,  -- JSON object
    importance  REAL NOT NULL,  -- 0 to 10
    create_time REAL NOT NULL,
    update_time REAL NOT NULL,
    UNIQUE (user_id, device_id, agent_id, folded, entity_type)
);
CREATE INDEX entities_by_name ON entities (user_id, folded);

CREATE TABLE entity_names (  -- every spelling that an entity is found by
    user_id    TEXT NOT NULL,
    folded     TEXT NOT NULL,
    entity_seq INTEGER NOT NULL REFERENCES entities (seq) ON DELETE CASCADE,
    spelling   TEXT NOT NULL,
    is_alias   INTEGER NOT NULL,
    PRIMARY KEY (user_id, folded, entity_seq)
) WITHOUT ROWID;
CREATE INDEX entity_names_of_entity ON entity_names (entity_seq);

CREATE TABLE entity_terms (  -- every word that an entity is found by
    user_id    TEXT NOT NULL,
    term       TEXT NOT NULL,
    entity_seq INTEGER NOT NULL REFERENCES entities (seq) ON DELETE CASCADE,
    weight     INTEGER NOT NULL,  -- how often it stands there, in a name twice as much
    PRIMARY KEY (user_id, term, entity_seq)
) WITHOUT ROWID;
CREATE INDEX entity_terms_of_entity ON entity_terms (entity_seq);

CREATE TABLE relationships (  -- directed: the source does something to the target
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id     TEXT NOT NULL,
    device_id   TEXT NOT NULL,
    agent_id    TEXT NOT NULL,
    source_seq  INTEGER NOT NULL REFERENCES entities (seq) ON DELETE CASCADE,
    folded      TEXT NOT NULL,  -- the relation, case and separators folded
    target_seq  INTEGER NOT NULL REFERENCES entities (seq) ON DELETE CASCADE,
    relation    TEXT NOT NULL,
    description TEXT NOT NULL,
    metadata    TEXT NOT NULL,  -- JSON object
    create_time REAL NOT NULL,
    update_time REAL NOT NULL,
    UNIQUE (source_seq, target_seq, folded, user_id, device_id, agent_id)
);
CREATE INDEX relationships_of_target ON relationships (target_seq);
