"""Memory in layers: what was called and said, what is important, what it came to, what is known."""
