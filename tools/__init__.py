"""The crib: every tool, and the one path that a call takes."""

__all__ = ["GROUPS"]

GROUPS = ("agent", "data")
"""Packages in here whose modules are tools too."""
