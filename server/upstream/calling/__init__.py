"""Calls of other servers' tools, and the servers' questions during a call."""
