"""Functions become resources and prompts."""
