"""Locates the settings file; separate from the settings, which load slowly."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

CONFIG_VARIABLE = "TOOLCRIB_CONFIG"


def usual_path() -> Path:
    """Returns the default path of the settings file."""
    import platformdirs  # an author's own server has no settings file

    directory = platformdirs.user_config_dir("toolcrib", appauthor=False)
    return Path(directory, "config.toml").absolute()


def settings_path(config_file: Path | None, environ: Mapping[str, str]) -> tuple[Path, str]:
    """Returns the settings file and what named it; empty for the default path."""
    if config_file is not None:
        return config_file.absolute(), "--config"
    if environ.get(CONFIG_VARIABLE):
        return Path(environ[CONFIG_VARIABLE]).absolute(), CONFIG_VARIABLE
    return usual_path(), ""


class SettingsError(Exception):
    """An invalid setting; the message names it, its source and what is allowed."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def default_data_dir() -> Path:
    """Returns the default directory of stored data."""
    import platformdirs  # an author's own server stores nothing

    path = Path(platformdirs.user_data_dir("toolcrib", appauthor=False))
    if not path.is_absolute():  # "~" stays if the user has no home
        raise SettingsError(
            "This user has no home directory: set data_dir to a directory for data."
        )
    return path
