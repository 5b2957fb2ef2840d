"""Follow-ups: detects queries that depend on earlier ones, and completes them."""
