"""JSON Schemas (2020-12): of types, as clients want them, and read."""
