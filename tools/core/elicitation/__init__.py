"""Lets a function ask the client during its call."""
