"""The audit log and the memory of calls."""
