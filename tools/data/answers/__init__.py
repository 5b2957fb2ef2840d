"""The answers of the tools for recipes."""
