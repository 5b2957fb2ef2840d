"""The web: every request that leaves the product, judged at the socket."""
