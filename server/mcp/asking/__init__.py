"""Questions to clients, in both eras of the protocol, and the requests that they belong to."""
