"""The settings and their sources."""

from server.settings.settings import Settings
from server.settings_file import SettingsError

__all__ = ["Settings", "SettingsError"]
