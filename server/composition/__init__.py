"""The parts of the composition root: each is built from the settings."""
