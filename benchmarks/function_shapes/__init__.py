"""Shapes of Python functions, and what a tool made of each must do, whoever makes it."""
