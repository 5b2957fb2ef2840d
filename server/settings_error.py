"""The error that ends a command with a message; separate, as the settings load slowly."""

from __future__ import annotations


class SettingsError(Exception):
    """An invalid setting; the message names it, its source and what is allowed.

    Attributes:
        message: The problem, with the value.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
