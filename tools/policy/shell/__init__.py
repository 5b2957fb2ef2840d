"""Shell commands under policy rules."""
