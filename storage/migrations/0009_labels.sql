-- What a filter finds contexts by: each plain value of their metadata, and of lists in it.
CREATE TABLE labels (
    user_id     TEXT NOT NULL,
    key         TEXT NOT NULL,
    value       TEXT NOT NULL COLLATE NOCASE,
    context_seq INTEGER NOT NULL REFERENCES contexts (seq) ON DELETE CASCADE,
    PRIMARY KEY (user_id, key, value, context_seq)
) WITHOUT ROWID;
CREATE INDEX labels_of_context ON labels (context_seq);

CREATE VIEW labels_in_metadata AS  -- storage.labels.label_of writes the same values
    WITH plain AS (
        SELECT x.seq AS context_seq, x.user_id, each.key,
            iif(each.type = 'array', leaf.type, each.type) AS type,
            iif(each.type = 'array', leaf.atom, each.atom) AS atom
        FROM contexts x,
            json_each(iif(json_valid(x.metadata), x.metadata, '{}')) each,
            json_each(iif(each.type = 'array', each.value, '[0]')) leaf
    )
    SELECT context_seq, user_id, key,
        CASE
            WHEN type IN ('true', 'false') THEN type
            WHEN typeof(atom) <> 'real' THEN atom
            WHEN abs(atom) < 9e15 AND atom = CAST(atom AS INTEGER) THEN CAST(atom AS INTEGER)
            ELSE printf('%.12g', atom)
        END AS value
    FROM plain
    WHERE atom IS NOT NULL AND length(atom) <= 256;
INSERT OR IGNORE INTO labels (user_id, key, value, context_seq)
    SELECT user_id, key, value, context_seq FROM labels_in_metadata;

CREATE TRIGGER contexts_labelled AFTER INSERT ON contexts WHEN new.metadata <> '{}' BEGIN
    INSERT OR IGNORE INTO labels (user_id, key, value, context_seq)
        SELECT user_id, key, value, context_seq FROM labels_in_metadata
        WHERE context_seq = new.seq;
END;
CREATE TRIGGER contexts_relabelled AFTER UPDATE OF metadata ON contexts
WHEN new.metadata <> old.metadata BEGIN
    DELETE FROM labels WHERE context_seq = new.seq;
    INSERT OR IGNORE INTO labels (user_id, key, value, context_seq)
        SELECT user_id, key, value, context_seq FROM labels_in_metadata
        WHERE context_seq = new.seq;
END;
