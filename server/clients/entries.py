"""Translates entries of clients' files to servers in our settings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from server.clients.dialects import Named

LONGEST_TIMEOUT = 3_600.0
"""Maximum timeout of a call in the settings, in seconds."""

LONGEST_START = 600.0
"""Maximum timeout for the first answer, in seconds."""

TRANSPORTS = {
    "stdio": "stdio",
    "local": "stdio",
    "http": "http",
    "https": "http",
    "remote": "http",
    "streamablehttp": "http",
    "sse": "sse",
}
"""Clients' names for transports, without case, blanks and separators."""

OF_NO_MEANING = frozenset(
    """
    $schema description dev gallery icon name required source supports_parallel_tool_calls title
    version
    """.split()  # noqa: SIM905  # a dozen names read best as text
)
"""Keys without effect, or with effect on the client only."""

APPROVALS = frozenset(
    {"alwaysAllow", "autoApprove", "default_tools_approval_mode", "tools", "trust"}
)
"""Keys that list what the client runs without asking."""

SIGN_IN = frozenset(
    "auth authProviderType authorization headersHelper oauth oauth_resource scopes".split()  # noqa: SIM905  # names read best as text
)
"""Keys that describe how the client gets a token."""

_HTTP = re.compile(r"https?://\S+$")


class InvalidEntryError(ValueError):
    """An entry that cannot become a server; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Translation:
    """A server in the form of our settings."""

    fields: dict[str, Any]
    to_do: tuple[str, ...] = ()  # what the user must fill in or do before it works
    notes: tuple[str, ...] = ()  # what was dropped or changed


def translate(named: Named) -> Translation:
    """Translates an entry of a client's file to our settings.

    Raises:
        InvalidEntryError: If it cannot be translate.
    """
    if not isinstance(named.entry, Mapping):
        raise InvalidEntryError("it is not a table with a command or a url")
    return _Entry(named, named.entry).translation()


class _Entry:
    """One entry during translation; keys that were read are removed from `left`."""

    def __init__(self, named: Named, entry: Mapping[str, Any]) -> None:
        self.named = named
        self.left = dict(entry)
        if isinstance(self.left.get("command"), Mapping):  # Zed's until 2025
            command = self.left.pop("command")
            self.left |= {**command, "command": command.get("path", "")}
            self.left.pop("path", None)
        if isinstance(words := self.left.get("command"), list) and words:  # opencode's
            self.left |= {"command": words[0], "args": words[1:]}
        for theirs, common in (("cmd", "command"), ("envs", "env"), ("uri", "url")):  # goose's
            if theirs in self.left:
                self.left.setdefault(common, self.left.pop(theirs))
        if "environment" in self.left:
            self.left.setdefault("env", self.left.pop("environment"))
        self.placeholders = Placeholders(named.project, bare_variables=named.client.bare_variables)
        self.to_do: list[str] = []
        self.notes: list[str] = []

    def translation(self) -> Translation:
        fields = self._address()
        fields |= self._times()
        fields |= self._tools()
        if self._is_off():
            fields["enabled"] = False
        self._note_leftovers()
        if self._note_placeholders():
            fields["enabled"] = False
        return Translation(fields, tuple(self.to_do), tuple(self.notes))

    def _address(self) -> dict[str, Any]:
        kind = self._kind()
        command = self._take_text("command")
        url = next(filter(None, map(self._take_text, ("httpUrl", "url", "serverUrl"))), "")
        if kind == "stdio" or (command and not url):
            if not command:
                raise InvalidEntryError(self._without("it has no command"))
            return self._command_fields(command)
        if not url:
            raise InvalidEntryError(self._without("it has neither a command nor a url"))
        if command:
            self.notes.append(f"its command {command!r} was left out, as it has a url")
        return self._url_fields(url, kind)

    def _kind(self) -> str:
        said = [self._take_text(key) for key in ("type", "transport", "transportType")]
        kind = next(filter(None, said), "")
        if not kind:
            return ""
        known = TRANSPORTS.get("".join(filter(str.isalnum, kind.lower())))
        if known is None:
            raise InvalidEntryError(
                f"it uses {kind!r}; supported are stdio, Streamable HTTP and sse"
            )
        return known

    def _without(self, problem: str) -> str:
        if self.named.client.name == "zed" and "settings" in self.left:
            return "a Zed extension starts it, which only Zed can do"
        return problem

    def _command_fields(self, command: str) -> dict[str, Any]:
        fields: dict[str, Any] = {"command": self._replace(command, "command")}
        given = self.left.pop("args", None) or []
        if not isinstance(given, list):
            raise InvalidEntryError("its args are not a list")
        args = [self._replace(_to_text(each, "args"), "args") for each in given]
        if args:
            fields["args"] = args
        env = self._variables(self.left.pop("env", None), "env")
        for each in self.left.pop("env_vars", None) or ():  # Codex passes these on
            name = each.get("name") if isinstance(each, Mapping) else each
            env[_to_text(name, "env_vars")] = f"${{{name}}}"
        folder = self._folder()
        if folder:
            fields["cwd"] = folder
        if env:
            fields["env"] = env
        file = self._take_text("envFile")
        if file:
            path = self._replace(file, "envFile")
            self.to_do.append(f"the variables in {path} are not read: write them under env")
        return fields

    def _folder(self) -> str:
        """Returns its working directory; the default is the project folder, as in clients."""
        given = self._take_text("cwd")
        if not given:
            return str(self.named.project or "")
        folder = self.placeholders.replaced(given, "cwd", variables=False)
        if folder.startswith(("~", "$")):
            return folder
        return str((self.named.project or self.named.file.parent) / folder)

    def _url_fields(self, url: str, kind: str) -> dict[str, Any]:
        address = self._replace(url, "url")
        if not _HTTP.match(address):  # the settings check it, so defaults are filled in
            address = self.placeholders.replaced(url, "url", variables=False)
        if not _HTTP.match(address):
            raise InvalidEntryError(f"its url {url!r} is not an http or https address")
        fields: dict[str, Any] = {"url": address}
        if kind == "sse":
            fields["transport"] = "sse"
        variable = self._take_text("bearer_token_env_var")
        if variable:
            fields["token"] = f"${{{variable}}}"
        headers = {
            **self._variables(self.left.pop("headers", None), "headers"),
            **self._variables(self.left.pop("http_headers", None), "http_headers"),
        }
        for header, name in self._texts(self.left.pop("env_http_headers", None)):
            headers[header] = f"${{{name}}}"
        if headers:
            fields["headers"] = headers
        return fields

    def _times(self) -> dict[str, float]:
        times = {}
        for key, ours, unit, longest in (
            ("timeout", "timeout", self.named.client.timeout_unit, LONGEST_TIMEOUT),
            ("tool_timeout_sec", "timeout", 1, LONGEST_TIMEOUT),
            ("startup_timeout_ms", "start_timeout", 0.001, LONGEST_START),
            ("startup_timeout_sec", "start_timeout", 1, LONGEST_START),
        ):
            if key in self.left and unit is not None:
                times[ours] = self._seconds(key, unit, longest)
        return {key: seconds for key, seconds in times.items() if seconds}

    def _seconds(self, key: str, unit: float, longest: float) -> float:
        """Returns seconds, or 0 for an invalid value."""
        given = self.left.pop(key)
        if isinstance(given, bool) or not isinstance(given, int | float) or not given > 0:
            self.notes.append(f"its {key} = {given!r} is not a duration, and was left out")
            return 0.0
        seconds = min(given * unit, longest)
        if seconds < given * unit:
            self.notes.append(f"its {key} was cut to {longest:g} seconds")
        return round(seconds, 3) or 0.001

    def _tools(self) -> dict[str, list[str]]:
        lists = {}
        for key, ours in (
            ("enabled_tools", "allow"),
            ("includeTools", "allow"),
            ("enabledTools", "allow"),
            ("disabled_tools", "deny"),
            ("excludeTools", "deny"),
            ("disabledTools", "deny"),
        ):
            given = self.left.pop(key, None)
            if isinstance(given, list) and given:
                lists[ours] = [_to_text(each, key) for each in given]
            elif isinstance(given, list) and ours == "allow":
                self.left["enabled"] = False
                self.notes.append(f"its {key} is empty: none of its tools was in use")
        return lists

    def _is_off(self) -> bool:
        off = self.named.off
        off |= self.left.pop("disabled", False) is True
        off |= self.left.pop("enabled", True) is False
        off |= self.left.pop("isActive", True) is False
        return off

    def _note_leftovers(self) -> None:
        left = {key for key, value in self.left.items() if value not in (None, "", [], {}, False)}
        left -= OF_NO_MEANING
        title = self.named.client.title
        if left & SIGN_IN:
            said = ", ".join(sorted(left & SIGN_IN))
            self.to_do.append(f"{title} signs in ({said}), which Toolcrib cannot: set a token")
        if left & APPROVALS:
            said = ", ".join(sorted(left & APPROVALS))
            self.notes.append(f"{said}: here, [policy] decides what runs without asking")
        others = ", ".join(sorted(left - SIGN_IN - APPROVALS))
        if others:
            self.notes.append(f"not taken over: {others}")

    def _note_placeholders(self) -> bool:
        found = self.placeholders
        for asked, name in found.asked.items():
            self.to_do.append(
                f"{self.named.client.title} asked for {asked!r}: set the variable {name}, or"
                f" replace ${{{name}}} with the value"
            )
        for name in dict.fromkeys(found.defaults):
            self.notes.append(f"the default of {name} was written out")
        for placeholder, field in found.unknown.items():
            self.to_do.append(f"fill in {placeholder} in {field}, then remove enabled = false")
        return bool(found.unknown)

    def _variables(self, given: object, field: str) -> dict[str, str]:
        return {name: self._replace(value, f"{field}.{name}") for name, value in self._texts(given)}

    def _texts(self, given: object) -> Iterator[tuple[str, str]]:
        if given is not None and not isinstance(given, Mapping):
            raise InvalidEntryError("its env or headers are not a table")
        for name, value in (given or {}).items():
            if value is not None:  # VS Code unsets a variable so
                yield name, _to_text(value, name)

    def _replace(self, text: str, field: str) -> str:
        return self.placeholders.replaced(text, field)

    def _take_text(self, key: str) -> str:
        value = self.left.pop(key, None)
        return "" if value is None else _to_text(value, key)


def _to_text(value: object, key: str) -> str:
    """Converts a scalar to text; keeps numbers as written."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise InvalidEntryError(f"its {key} holds something that is not text")


_PLACEHOLDER = re.compile(r"\$\{([^{}]*)\}")
_BARE = re.compile(r"\$([A-Za-z_]\w*)")
_VARIABLE = re.compile(r"(?:env:)?([A-Za-z_]\w*)(?::-(.*))?", re.DOTALL)
_STORED = re.compile(r"\$\{(?:file|keyring):[^}]*\}")
_ASKED = re.compile(r"(?:input|promptString):(.+)")


class Placeholders:
    """Replaces the placeholders of one server, and collects what the user must fill in."""

    def __init__(self, project: Path | None, *, bare_variables: bool) -> None:
        self._project = project
        self._bare_variables = bare_variables
        self.asked: dict[str, str] = {}
        self.unknown: dict[str, str] = {}
        self.defaults: list[str] = []

    def replaced(self, text: str, field: str, *, variables: bool = True) -> str:
        """Converts a text's placeholders to ours: `${NAME}` and `${NAME:-default}`."""
        if self._bare_variables:
            text = _BARE.sub(r"${\1}", text)
        text = _PLACEHOLDER.sub(lambda found: self._meaning(found, field, variables), text)
        # A file of another program does not choose which of our secrets a server gets.
        self.unknown |= dict.fromkeys(_STORED.findall(text), field)
        return text

    def _meaning(self, found: re.Match[str], field: str, variables: bool) -> str:
        known = self._known_value(found[1])
        if known is not None:
            return known
        asked = _ASKED.fullmatch(found[1])
        variable = _VARIABLE.fullmatch(found[1])
        if asked and variables:
            name = self.asked[asked[1]] = re.sub(r"\W+", "_", asked[1], flags=re.ASCII).upper()
            return f"${{{name}}}"
        if variable and variables:
            return f"${{{found[1].removeprefix('env:')}}}"
        if variable and variable[2] is not None:
            self.defaults.append(variable[1])
            return variable[2]
        self.unknown[found[0]] = field
        return found[0]

    def _known_value(self, name: str) -> str | None:
        """Returns the value of a placeholder for a known path."""
        if name in {"/", "pathSeparator"}:
            return "/"
        if name == "userHome":
            return str(Path.home())
        if self._project and name in {"workspaceFolder", "workspaceRoot", "CLAUDE_PROJECT_DIR"}:
            return str(self._project)
        if self._project and name == "workspaceFolderBasename":
            return self._project.name
        return None
