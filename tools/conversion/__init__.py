"""Builds the parts of FunctionToMCP that convert between Python functions and JSON."""
