"""References in settings, such as `${keyring:github}`, which are replaced where they are used."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from pydantic import SecretStr

from tools.core.errors import UnavailableError
from tools.sandbox.secrets.redaction import Redaction
from tools.sandbox.secrets.secrets import (
    SHORTEST,
    File,
    KeyringEntry,
    Origin,
    Variable,
    value_problem,
)

SECRET_WORDS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL")
"""Words in the names of variables whose values are redacted."""

# `${env:}` is a mistake, and `${input:x}` a placeholder of a client, which `doctor` reports.
_REFERENCE = re.compile(
    r"\$\{(?:(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?"
    r"|(?P<kind>env|file|keyring):(?P<rest>[^}]*))\}"
)
_SCHEME = re.compile(r"(?i)(?:bearer|basic|token)? *")
MASK = "**********"


def shown(text: str) -> str:
    """Returns a secret setting as it may be shown: its references alone, else a mask."""
    is_plain = any(found["default"] for found in _REFERENCE.finditer(text))
    return text if not is_plain and _SCHEME.fullmatch(_REFERENCE.sub("", text)) else MASK


class References:
    """Replaces references by their values, which are read at each use and redacted from then on.

    Args:
        environ: The environment of this process.
        directory: The directory of secrets that no keyring keeps; None without one.
        redaction: Learns the values.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        directory: Path | None = None,
        redaction: Redaction | None = None,
    ) -> None:
        self.redaction = redaction or Redaction()
        self._environ = environ
        self._directory = directory

    def expand(self, text: str, where: str, *, is_secret: bool = False) -> str:
        """Replaces the references in a text; blocks.

        As in a shell, a default also replaces an empty variable. `where` begins the sentence of an
        error: "its token", "requests.proxy". The variables of secret settings are redacted, as are
        those that are named like secrets; others may be paths.
        """

        def value(found: re.Match[str]) -> str:
            name, default = found["name"], found["default"]
            if name is None:
                return self._stored(found, where)
            given = self._environ.get(name, "")
            if default is not None and not given:
                return default
            if name not in self._environ:
                raise UnavailableError(
                    f"{where} names the variable {name}, which is not set: set it where Toolcrib"
                    f" is started, or write ${{{name}:-default}}"
                )
            self.learn_variable(name, given, is_secret=is_secret)
            return given

        return _REFERENCE.sub(value, text)

    def secret(self, value: SecretStr, where: str) -> str:
        """Returns a secret setting with values instead of references; blocks."""
        return self.expand(value.get_secret_value(), where, is_secret=True)

    def learn_variable(self, name: str, value: str, *, is_secret: bool = False) -> None:
        """Redacts the value of a variable from now on if it is a secret."""
        is_named_so = any(word in name.upper() for word in SECRET_WORDS)
        if (is_secret or is_named_so) and len(value) >= SHORTEST:
            self.redaction.learn(name, value)

    def _stored(self, found: re.Match[str], where: str) -> str:
        try:
            value = self._origin(found["kind"], found["rest"]).read(self._environ).strip()
        except UnavailableError as error:
            raise _unusable(where, found[0], error.message, *error.next_actions) from error
        if problem := value_problem(value):
            raise _unusable(where, found[0], f"its value {problem}")
        self.redaction.learn(f"{found['kind']}:{found['rest']}", value)
        return value

    def _origin(self, kind: str, rest: str) -> Origin:
        if kind == "keyring" and rest:
            return KeyringEntry.parse(rest, self._directory)
        if kind == "file" and rest:
            return File(_path(rest))
        if kind == "env" and rest:
            return Variable(rest)
        raise UnavailableError(f"nothing follows '{kind}:'")


def files_in(text: str) -> list[Path]:
    """Returns the files that a text refers to."""
    paths = []
    for each in _REFERENCE.finditer(text):
        if each["kind"] == "file":
            with suppress(UnavailableError):  # then it cannot be read either
                paths.append(_path(each["rest"]))
    return paths


def _path(text: str) -> Path:
    try:
        path = Path(text).expanduser()
    except RuntimeError as error:  # an unknown user
        raise UnavailableError(str(error)) from error
    if not path.is_absolute():
        raise UnavailableError(
            "the path is relative", next_actions=["The user writes an absolute one, or ~/…."]
        )
    return path


def _unusable(where: str, reference: str, why: str, *next_actions: str) -> UnavailableError:
    remedy = "".join(f" {each}" for each in next_actions)
    return UnavailableError(
        f"{where} names {reference}, which cannot be used: {why.rstrip('.')}.{remedy}"
    )
