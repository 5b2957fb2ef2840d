"""The protocol: lists, calls, prompts, resources, and requests to the client."""
