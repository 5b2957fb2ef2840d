"""Conversations that people had with assistants elsewhere, as they come out of there."""
