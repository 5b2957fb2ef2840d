"""Builds result schemas and converts any Python value to JSON."""
