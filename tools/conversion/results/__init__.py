"""Results: their schema, and any Python value as JSON."""
