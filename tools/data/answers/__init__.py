"""What the tools of recipes answer."""
