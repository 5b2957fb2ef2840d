"""Retrieval: the one engine that finds what is stored."""
