"""Embedders: the bundled model, and models that a setting selects instead."""
