"""The catalogue's shelves: what tools are found by, who used which, what upstream servers list."""
