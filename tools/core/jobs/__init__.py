"""Turns long calls into jobs, which the caller checks later."""
