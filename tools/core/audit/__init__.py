"""Writes the audit log and records calls in memory."""
