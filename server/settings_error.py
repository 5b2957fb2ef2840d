"""The failure that ends a command with a message, apart from the settings: these load slowly."""

from __future__ import annotations


class SettingsError(Exception):
    """A setting that cannot be used; the message names it, its source and what is allowed.

    Attributes:
        message: What was wrong, with the value.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
