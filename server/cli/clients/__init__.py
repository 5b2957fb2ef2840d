"""Commands that write and check the configuration of MCP clients."""
