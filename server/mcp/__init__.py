"""The protocol: lists, calls, prompts, resources, and questions to the client."""
