-- What a filter finds contexts by: each plain value of their metadata, and of lists in it.
CREATE TABLE labels (
    user_id     TEXT NOT NULL,
    key         TEXT NOT NULL,
    value       TEXT NOT NULL COLLATE NOCASE,
    context_seq INTEGER NOT NULL REFERENCES contexts (seq) ON DELETE CASCADE,
    PRIMARY KEY (user_id, key, value, context_seq)
) WITHOUT ROWID;
CREATE INDEX labels_of_context ON labels (context_seq);

CREATE VIEW labels_in_metadata AS
    SELECT DISTINCT x.seq AS context_seq, x.user_id, each.key, CAST(leaf.atom AS TEXT) AS value
    FROM contexts x, json_each(x.metadata) each,
        json_each(CASE each.type WHEN 'array' THEN each.value ELSE json_array(each.value) END) leaf
    WHERE each.type <> 'object' AND leaf.atom IS NOT NULL AND length(leaf.atom) <= 256;
INSERT OR IGNORE INTO labels (user_id, key, value, context_seq)
    SELECT user_id, key, value, context_seq FROM labels_in_metadata;

CREATE TRIGGER contexts_labelled AFTER INSERT ON contexts WHEN new.metadata <> '{}' BEGIN
    INSERT OR IGNORE INTO labels (user_id, key, value, context_seq)
        SELECT user_id, key, value, context_seq FROM labels_in_metadata
        WHERE context_seq = new.seq;
END;
CREATE TRIGGER contexts_relabelled AFTER UPDATE OF metadata ON contexts BEGIN
    DELETE FROM labels WHERE context_seq = new.seq;
    INSERT OR IGNORE INTO labels (user_id, key, value, context_seq)
        SELECT user_id, key, value, context_seq FROM labels_in_metadata
        WHERE context_seq = new.seq;
END;
