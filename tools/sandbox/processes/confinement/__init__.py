"""The levels of confinement, each proved by a probe."""
