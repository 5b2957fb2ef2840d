"""Secrets: inserted only at the socket and at exec(), and redacted everywhere else."""
