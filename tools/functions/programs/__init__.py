"""Runs programs over tools, and tools that agents write, in confined workers."""
