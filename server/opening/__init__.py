"""The first message over stdio, answered while the rest of the product is still being loaded."""
