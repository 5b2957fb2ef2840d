"""The crib: every tool, and the one path that a call takes."""
