"""Processes: programs started under the confinement that the settings require."""
