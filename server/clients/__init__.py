"""Reads the configuration files of MCP clients for the servers in them."""
