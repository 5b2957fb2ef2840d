"""Jobs: calls that take long are answered before they end, and looked at again."""
