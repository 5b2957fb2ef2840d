"""Defines the foundation of all tools: specifications, the registry and the call path."""
