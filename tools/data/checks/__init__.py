"""Checks recipes without Data-Juicer."""
