"""Other MCP servers behind this one: their tools, resources and prompts (scope mcp)."""
