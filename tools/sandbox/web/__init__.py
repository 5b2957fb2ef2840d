"""The web: makes all outgoing requests, and checks each one at the socket."""
