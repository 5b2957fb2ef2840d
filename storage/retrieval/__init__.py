"""The search engine for everything that is stored."""
