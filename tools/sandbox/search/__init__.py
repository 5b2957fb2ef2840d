"""Searches files by name and content, in a worker process."""
