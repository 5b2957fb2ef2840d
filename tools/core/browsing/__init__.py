"""Defines the resources and prompts that clients browse."""
