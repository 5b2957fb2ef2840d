"""OpenAPI: operations of HTTP APIs, as their descriptions tell of them, become tools."""
