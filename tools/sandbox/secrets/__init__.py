"""Secrets: put in at the socket and at exec(), and taken out of whatever is shown."""
