-- Rules that would allow a question's call from now on: a JSON list of lists, the narrowest first.
ALTER TABLE approvals ADD COLUMN offers TEXT NOT NULL DEFAULT '[]';
