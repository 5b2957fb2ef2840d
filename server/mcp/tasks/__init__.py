"""Long calls as jobs, and as tasks of the protocol's extension."""
