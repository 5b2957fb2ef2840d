"""Commands for other MCP servers."""
