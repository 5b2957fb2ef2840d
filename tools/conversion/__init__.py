"""From a Python function to JSON and back: the parts of FunctionToMCP."""
