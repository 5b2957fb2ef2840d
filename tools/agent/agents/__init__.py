"""The agents in the settings, to which work is delegated."""
