"""What clients browse besides tools: resources and prompts."""
