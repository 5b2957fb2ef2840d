"""Turns operations of HTTP APIs with OpenAPI descriptions into tools."""
