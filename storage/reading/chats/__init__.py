"""Conversations with assistants of other programs, read from their exports."""
