"""Processes: starts programs under the confinement required by the settings."""
