"""Converts functions to resources and prompts."""
