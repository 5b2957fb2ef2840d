"""The counter: protocol, transports, people."""
