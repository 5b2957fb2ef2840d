"""The indexes: keywords, vectors, and the background work that keeps them up to date."""
