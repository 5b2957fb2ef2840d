"""Programs over tools, and tools that agents write: confined workers and what runs in them."""
