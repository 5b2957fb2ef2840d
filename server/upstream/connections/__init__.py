"""Connections to other servers: opened, kept alive, and listed by."""
