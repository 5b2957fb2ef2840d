"""Paths in the root that other programs obey, protected from confined programs."""
