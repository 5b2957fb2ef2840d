"""Saves files before each call changes them, and undoes the changes."""
