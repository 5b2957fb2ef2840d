-- A rule granted for a limited time holds for the client that was asked. Those of before name none.
ALTER TABLE grants ADD COLUMN client TEXT NOT NULL DEFAULT '';
