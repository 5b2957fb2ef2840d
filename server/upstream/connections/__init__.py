"""Connections to other servers: open them, keep them alive, list what they offer."""
