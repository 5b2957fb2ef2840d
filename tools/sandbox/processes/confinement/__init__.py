"""The sandbox levels, each verified by a probe."""
