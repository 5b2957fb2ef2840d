"""All tools, and the pipeline of a call."""

__all__ = ["GROUPS"]

GROUPS = ("agent", "data")  # subpackages whose modules are also tools
