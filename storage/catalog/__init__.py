"""Stores tool analyses, tool usage and the listings of upstream servers."""
