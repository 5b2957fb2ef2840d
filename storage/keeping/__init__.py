"""Keeping: backups, exports, and deleting for good."""
