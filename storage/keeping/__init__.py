"""Backups, exports and permanent deletion."""
