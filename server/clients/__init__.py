"""Configuration files of MCP clients, read for the servers that they name."""
