"""Serves function files: plain Python files whose functions are tools, run in workers."""
