"""Calls that take long, as jobs and as the tasks of the protocol's extension."""
