"""Directories: people or things from a file, found by name, by topic and by where they belong."""
