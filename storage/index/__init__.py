"""The indexes: words, vectors, and the background work that keeps both up to the record."""
