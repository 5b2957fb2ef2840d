"""Settings: what can be set, and from where."""

from server.settings.settings import Settings, SettingsError

__all__ = ["Settings", "SettingsError"]
