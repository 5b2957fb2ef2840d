"""The secrets that `toolcrib secret set` keeps: in the keyring, or in files of our own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from storage.keeping.atomic import atomic_file
from tools.core.errors import InvalidArgumentsError, UnavailableError
from tools.sandbox.secrets.secrets import SERVICE, STORED_NAME, open_keyring, value_problem

FOLDER = "secrets"
"""Their folder in the data directory."""


class SecretStore:
    """Secrets by name.

    A keyring cannot list its entries, so each secret has a file: empty if the keyring has the
    value, else with the value, readable by its owner alone.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def put(self, name: str, value: str, *, in_file: bool = False) -> Path | None:
        """Keeps a secret in place of a former one; returns its file, None in the keyring.

        Raises UnavailableError if there is no keyring that can be used.
        """
        path = self.check(name)
        if problem := value_problem(value):
            raise InvalidArgumentsError(f"The value {problem}.")
        if not in_file:
            with open_keyring() as keyring:
                keyring.set_password(SERVICE, name, value)
                is_kept = keyring.get_password(SERVICE, name) == value  # one backend drops it
            if not is_kept:
                raise UnavailableError("the keyring did not keep the value")
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with atomic_file(path, replace=True) as temporary:
            temporary.write_text(value if in_file else "", encoding="utf-8")
        return path if in_file else None

    def remove(self, name: str) -> None:
        """Deletes a secret, also from the keyring; the file is deleted last."""
        path = self.check(name)
        if not path.exists():
            known = ", ".join(each for each, _ in self.names()) or "none"
            raise InvalidArgumentsError(f"There is no secret {name!r}; there are: {known}.")
        if not path.stat().st_size:
            with open_keyring() as keyring:
                with suppress(keyring.errors.PasswordDeleteError):  # the user deleted it there
                    keyring.delete_password(SERVICE, name)
                is_left = keyring.get_password(SERVICE, name) is not None
            if is_left:
                raise UnavailableError(f"the keyring did not delete the entry {SERVICE}/{name}")
        path.unlink()

    def names(self) -> Iterator[tuple[str, bool]]:
        """Yields the name of each secret, and whether it is in a file."""
        if self.directory.is_dir():
            for path in sorted(self.directory.iterdir()):
                if STORED_NAME.fullmatch(path.name):
                    yield path.name, path.stat().st_size > 0

    def check(self, name: str) -> Path:
        """Returns the file of a name that a secret can have."""
        if not STORED_NAME.fullmatch(name):
            raise InvalidArgumentsError(
                f"{name!r} cannot be the name of a secret: use a-z, 0-9, _ and -; 64 at most."
            )
        return self.directory / name
