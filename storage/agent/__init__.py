"""Stores what agents plan to do."""
