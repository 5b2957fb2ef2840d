"""Text to vectors: the bundled model, and those that a setting chooses instead."""
