"""Searching among files: by name and by content, with ripgrep or a worker of our own."""
