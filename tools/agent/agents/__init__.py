"""Agents that work is given to, as the settings name them."""
