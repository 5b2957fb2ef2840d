"""A keyring in the file that a variable names, for processes of tests."""

import json
import os
from pathlib import Path

from keyring.backend import KeyringBackend
from keyring.errors import PasswordDeleteError


class Keyring(KeyringBackend):
    """A keyring that other processes read too."""

    priority = 1

    @property
    def file(self) -> Path:
        return Path(os.environ["KEYRING_FILE"])

    @property
    def entries(self) -> dict[str, str]:
        found: dict[str, str] = json.loads(self.file.read_text()) if self.file.exists() else {}
        return found

    def get_password(self, service: str, username: str) -> str | None:
        return self.entries.get(f"{service} {username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        self.file.write_text(json.dumps({**self.entries, f"{service} {username}": password}))

    def delete_password(self, service: str, username: str) -> None:
        entries = self.entries
        if entries.pop(f"{service} {username}", None) is None:
            raise PasswordDeleteError
        self.file.write_text(json.dumps(entries))
