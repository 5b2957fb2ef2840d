"""Shared parts of commands: options, questions, progress and terminal output."""
