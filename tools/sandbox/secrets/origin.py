"""Origins of secret values: a variable, a file or the keyring, read on each use."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Protocol

from tools.core.errors import UnavailableError

MAX_FILE_BYTES = 65_536
OTHERS = stat.S_IRWXG | stat.S_IRWXO


class Origin(Protocol):
    """The origin of a value."""

    def read(self, environ: Mapping[str, str]) -> str:
        """Reads the value; blocks."""


@dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable of the server."""

    name: str

    def read(self, environ: Mapping[str, str]) -> str:
        """Returns the variable, which must be set."""
        if not environ.get(self.name):
            raise UnavailableError(
                f"the environment variable {self.name} is not set",
                next_actions=[f"The user sets {self.name} where Toolcrib is started."],
            )
        return environ[self.name]


@dataclass(frozen=True, slots=True)
class File:
    """A file that only its owner can read."""

    path: Path

    def read(self, environ: Mapping[str, str]) -> str:  # noqa: ARG002  # a file needs none
        """Returns the content of the file; checks its permissions on the open descriptor."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            with os.fdopen(descriptor, "rb") as file:
                found = os.fstat(descriptor)
                self._check(found)
                return file.read(MAX_FILE_BYTES).decode()
        except OSError as error:
            raise self._unusable(
                f"cannot be read: {error.strerror}", "puts the secret there, in a file of its own"
            ) from error
        except UnicodeDecodeError:
            raise self._unusable("is not UTF-8 text", "writes the secret there as text") from None

    def _check(self, found: os.stat_result) -> None:
        if not stat.S_ISREG(found.st_mode):
            raise self._unusable("is not a file", "puts the secret there, in a file of its own")
        if found.st_mode & OTHERS:
            raise self._unusable(
                f"can be read or written by others (mode {stat.S_IMODE(found.st_mode):03o})",
                f"runs: chmod 600 {self.path}",
            )

    def _unusable(self, how: str, remedy: str) -> UnavailableError:
        return UnavailableError(f"the file {self.path} {how}", next_actions=[f"The user {remedy}."])


@dataclass(frozen=True, slots=True)
class KeyringEntry:
    """An entry in the desktop's keyring."""

    service: str
    username: str

    def read(self, environ: Mapping[str, str]) -> str:  # noqa: ARG002  # the keyring needs none
        """Returns the entry; the desktop may ask the user to unlock the keyring."""
        try:
            keyring = import_module("keyring")
        except ImportError:
            raise UnavailableError(
                "the library keyring is not installed",
                next_actions=["The user runs: pip install 'toolcrib[keyring]'."],
            ) from None
        try:
            found = keyring.get_password(self.service, self.username)
        except keyring.errors.KeyringError as error:
            raise UnavailableError(
                f"the keyring cannot be used: {error}",
                next_actions=[
                    "The user unlocks it, or names env or file in its place in the settings."
                ],
            ) from error
        if not isinstance(found, str):
            raise UnavailableError(
                f"the keyring has no entry {self.service}/{self.username}",
                next_actions=[f"The user runs: keyring set {self.service} {self.username}."],
            )
        return found
