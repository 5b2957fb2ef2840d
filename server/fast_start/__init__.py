"""Answers the first message over stdio while the rest of the product loads."""
