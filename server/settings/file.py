"""The settings file: servers and rules are written into it, everything else stays as it is."""

from __future__ import annotations

import os
import tempfile
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Comment, Table, Whitespace

from server.settings.settings import SettingsError

__all__ = ["ServerTable", "SettingsFile"]

_BYTE_ORDER_MARK = "\ufeff"
_PRIVATE = 0o600


@dataclass(frozen=True, slots=True)
class ServerTable:
    """A server to be written.

    Attributes:
        name: Its name in the settings.
        fields: Its settings.
        comments: Lines at its head, such as where it comes from.
    """

    name: str
    fields: Mapping[str, Any]
    comments: tuple[str, ...] = ()


class SettingsFile:
    """One settings file, read once and written as a whole.

    Args:
        path: Where it is; it need not exist yet.

    Raises:
        SettingsError: If it cannot be read, or is not TOML.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._text = path.read_bytes().decode() if path.exists() else ""
            self._values = tomllib.loads(self._text.removeprefix(_BYTE_ORDER_MARK))
        except OSError as error:
            raise SettingsError(f"{path} cannot be read: {error.strerror}.") from error
        except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise SettingsError(f"{path} is not TOML: {error}.") from error

    @property
    def servers(self) -> Mapping[str, Any]:
        """The servers in the file, by name."""
        found = self._values.get("servers", {})
        return found if isinstance(found, dict) else {}

    @property
    def allowing(self) -> Any:  # noqa: ANN401  # whatever the file has
        """The rules that allow calls, as they are written; not looked at further."""
        policy = self._values.get("policy", {})
        return policy.get("allow", []) if isinstance(policy, dict) else None

    def put(self, tables: list[ServerTable]) -> None:
        """Writes servers, each in place of the one of the same name, or at the end.

        The file becomes readable by its owner alone, because servers have secrets.

        Raises:
            SettingsError: If it cannot be written, or not without changing anything else.
        """
        servers = dict(self.servers) | {each.name: each.fields for each in tables}
        text = self._changed(lambda document: _put_servers(document, tables), "servers", servers)
        if text is None:
            raise SettingsError(
                f"{self.path} cannot be changed safely: its servers are not written as tables"
                " [servers.NAME], one after the other. Write them so; nothing was changed."
            )
        self._replace(text, _PRIVATE)

    def allow(self, rules: Sequence[str]) -> None:
        """Adds rules to those that allow calls; the file keeps its mode.

        Raises:
            SettingsError: If it cannot be written, or not without changing anything else.
        """
        there, text = self.allowing, None
        if isinstance(there, list):
            new = [rule for rule in dict.fromkeys(rules) if rule not in there]
            if not new:
                return
            expected = {**self._values.get("policy", {}), "allow": [*there, *new]}
            text = self._changed(lambda document: _add_rules(document, new), "policy", expected)
        if text is None:
            raise SettingsError(
                f"{self.path} cannot be changed safely: write `allow = [...]`, a list, below"
                " [policy]. Nothing was changed."
            )
        self._replace(text, self.path.stat().st_mode & 0o777 if self.path.exists() else _PRIVATE)

    def _changed(
        self, change: Callable[[tomlkit.TOMLDocument], None], key: str, expected: object
    ) -> str | None:
        """The text after a change of one table; None where it would say anything else."""
        text = self._text.removeprefix(_BYTE_ORDER_MARK)
        windows = "\r\n" in text
        try:
            document = tomlkit.parse(text.replace("\r\n", "\n"))
            change(document)
            written = tomlkit.dumps(document)
            if tomllib.loads(written) != {**self._values, key: expected}:
                return None
        except (TOMLKitError, TypeError, ValueError):
            return None
        mark = _BYTE_ORDER_MARK if self._text.startswith(_BYTE_ORDER_MARK) else ""
        return mark + (written.replace("\n", "\r\n") if windows else written)

    def _replace(self, text: str, mode: int) -> None:
        """Puts a text in place of the file at once; a link to it stays one."""
        target = self.path.resolve()
        try:
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
            try:
                with os.fdopen(descriptor, "wb") as file:  # made with mode 0600
                    os.fchmod(descriptor, mode)
                    file.write(text.encode())
                    file.flush()
                    os.fsync(file.fileno())
                Path(name).replace(target)
            except BaseException:
                with suppress(OSError):
                    Path(name).unlink()
                raise
        except OSError as error:
            raise SettingsError(
                f"{self.path} cannot be written: {error.strerror}. Nothing was changed."
            ) from error


def _add_rules(document: tomlkit.TOMLDocument, rules: Sequence[str]) -> None:
    policy: Any = document.setdefault("policy", tomlkit.table())
    if "allow" not in policy:
        following = _pop_trailing(policy) if isinstance(policy, Table) else []
        policy.add("allow", tomlkit.array())
        for item in following:
            policy.add(item)
    for rule in rules:
        policy["allow"].append(rule)


def _put_servers(document: tomlkit.TOMLDocument, tables: list[ServerTable]) -> None:
    servers: Any = document.setdefault("servers", tomlkit.table(is_super_table=True))
    for each in tables:
        old = servers.get(each.name)
        following = _pop_trailing(old) if isinstance(old, Table) else []
        table = tomlkit.table()
        for comment in each.comments:
            table.add(tomlkit.comment(comment))
        for key, value in sorted(each.fields.items(), key=_is_table):
            table.add(key, value)
        for item in following:
            _last(table).add(item)
        servers[each.name] = table


def _is_table(item: tuple[str, object]) -> bool:
    return isinstance(item[1], Mapping)


def _pop_trailing(table: Table) -> list[Comment | Whitespace]:
    """Takes the comments and blank lines off a table's end, as they are about what follows it."""
    body = _last(table).value.body
    trailing: list[Comment | Whitespace] = []
    while body and isinstance(item := body[-1][1], Comment | Whitespace):
        trailing.insert(0, item)
        body.pop()
    return trailing


def _last(table: Table) -> Table:
    """The table in whose text another one ends: itself, or the last one in it."""
    body = table.value.body
    return _last(body[-1][1]) if body and isinstance(body[-1][1], Table) else table
