-- Of a call within a program: what is offered for the rest of that (JSON; empty for other calls), and
-- what a person said where that is more than yes or no.
ALTER TABLE approvals ADD COLUMN program TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN said TEXT NOT NULL DEFAULT '';
