"""Protects paths in the root that other programs obey from confined programs."""
