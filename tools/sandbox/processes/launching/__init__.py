"""Starts programs, and ends them with all their child processes."""
