"""What every tool stands on: specifications, conversion, the registry and the call path."""
