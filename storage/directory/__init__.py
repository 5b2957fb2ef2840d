"""Directories: people or things from a file, found by name, topic and group."""
