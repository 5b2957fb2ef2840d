"""Stores data and finds it again."""
