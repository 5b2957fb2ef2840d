"""Reads the signature, annotations and docstring of a Python callable."""
