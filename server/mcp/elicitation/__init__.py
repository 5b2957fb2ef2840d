"""Requests to clients, in both eras of the protocol, and the calls they belong to."""
