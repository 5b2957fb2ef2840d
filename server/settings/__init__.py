"""Settings: what can be set, and from where."""

from server.settings.settings import Settings
from server.settings_error import SettingsError

__all__ = ["Settings", "SettingsError"]
