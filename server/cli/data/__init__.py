"""Commands that import, export, back up and delete data."""
