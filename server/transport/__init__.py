"""The transports: stdio, SSE and Streamable HTTP, and their streams."""
