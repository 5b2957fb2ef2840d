"""The transports: stdio, SSE and Streamable HTTP, and what their streams need."""
