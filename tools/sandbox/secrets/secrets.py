"""The secrets in the settings: where their values come from, and where each may be used."""

from __future__ import annotations

import os
import re
import shlex
import stat
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, unquote_plus

import anyio.to_thread

from tools.conversion.arguments.validation_errors import nearest
from tools.core.errors import InvalidArgumentsError, PermissionDeniedError, UnavailableError
from tools.policy.shell.words import CommandPattern, LinePattern, Word
from tools.policy.shell.wrappers import inner_commands
from tools.sandbox.secrets.redaction import Redaction, marker
from tools.sandbox.web.hosts import host_and_port
from tools.sandbox.web.url import DEFAULT_PORTS, Url

SHORTEST = 8  # minimum length: shorter values would be redacted in unrelated texts
LONGEST = 8_000  # maximum length, about the limit of servers on a header
PLACE = re.compile(r"\{(secret|base64)\}")
RequestTarget = tuple[str, list[tuple[str, str]]]  # path and query of a request, with its headers

MAX_FILE_BYTES = 65_536
STORED_NAME = re.compile(r"[a-z0-9_-]{1,64}")
"""The name of a secret that `toolcrib secret set` keeps."""

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


SERVICE = "toolcrib"
"""The service in the keyring of the secrets that `toolcrib secret set` keeps."""


@contextmanager
def open_keyring() -> Iterator[Any]:
    """Yields the library of the keyring, whose errors become UnavailableError."""
    try:
        library = import_module("keyring")
    except ImportError:
        raise UnavailableError(
            "the library keyring is not installed",
            next_actions=["The user runs: pip install 'toolcrib[keyring]'."],
        ) from None
    try:
        yield library
    except Exception as error:  # a backend may raise anything
        raise UnavailableError(
            f"the keyring cannot be used: {error}",
            next_actions=[
                "The user unlocks it, or keeps the secret in a variable or private file."
            ],
        ) from error


@dataclass(frozen=True, slots=True)
class KeyringEntry:
    """An entry in the desktop's keyring."""

    service: str
    username: str
    directory: Path | None = None  # of our own secrets: a file there comes before the keyring

    @classmethod
    def parse(cls, text: str, directory: Path | None = None) -> KeyringEntry:
        """Parses `service/username`, or the name of a secret that `toolcrib secret set` keeps."""
        service, slash, username = text.partition("/")
        return cls(service, username) if slash else cls(SERVICE, text, directory)

    def read(self, environ: Mapping[str, str]) -> str:
        """Returns the entry; the desktop may ask the user to unlock the keyring."""
        if self.directory is not None:
            path = self.directory / self.username
            if not STORED_NAME.fullmatch(self.username) or not os.path.lexists(path):
                raise UnavailableError(
                    f"no secret {self.username!r} is kept",
                    next_actions=[f"The user runs: toolcrib secret set {self.username}."],
                )
            if value := File(path).read(environ):  # else the keyring has it
                return value
        with open_keyring() as keyring:
            found = keyring.get_password(self.service, self.username)
        if not isinstance(found, str):
            is_ours = self.directory is not None
            set_it = "toolcrib secret set" if is_ours else f"keyring set {self.service}"
            raise UnavailableError(
                f"the keyring has no entry {self.service}/{self.username}",
                next_actions=[f"The user runs: {set_it} {self.username}."],
            )
        return found


@dataclass(frozen=True, slots=True)
class HostPattern:
    """Hosts that a secret is for."""

    host: str  # a host, or after `*.` any host below it
    port: int

    @classmethod
    def parse(cls, text: str) -> HostPattern:
        """Parses `host`, `host:port` or `*.host`, as in URLs.

        Raises ValueError if it covers all hosts of a top-level domain.
        """
        named = text.removeprefix("*.")
        host, port = host_and_port(named, DEFAULT_PORTS["https"])
        if named == text:
            return cls(host, port)
        if "." not in host:
            raise ValueError(f"{text!r} covers too many hosts; name a domain below *.{host}")
        return cls(f"*.{host}", port)

    def matches(self, url: Url) -> bool:
        """Returns whether a URL is on one of these hosts."""
        if self.port != url.port:
            return False
        if self.host.startswith("*."):
            return url.host.endswith(self.host[1:])
        return url.host == self.host

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS["https"] else f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class ProgramPattern:
    """Commands that get a secret."""

    text: str  # the text in the settings, such as `npm publish *`
    _command: CommandPattern

    @classmethod
    def parse(cls, text: str) -> ProgramPattern:
        """Parses one command, as in policy rules.

        Raises ValueError if it is not a single command, or names no program.
        """
        pattern = LinePattern.parse(text)
        if len(pattern.commands) != 1 or not pattern.commands[0].fixed:
            raise ValueError(f"{text!r} has to name one program, such as 'npm publish *'")
        return cls(text, pattern.commands[0])

    def matches(self, words: Sequence[Word]) -> bool:
        """Returns whether it matches a command; it must name everything that the command runs."""
        return self._command.matches(words) and all(
            inner.at < self._command.fixed for inner in inner_commands(words)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """A secret."""

    name: str
    origin: Origin
    hosts: tuple[HostPattern, ...] = ()
    header: str = ""  # the request header that carries it; empty if it is in the query
    query: str = ""  # the query parameter that carries it; empty if it is in a header
    form: str = "{secret}"  # what is sent; `{secret}` or `{base64}` is replaced by the value
    programs: tuple[ProgramPattern, ...] = ()
    variable: str = ""

    def check(self, url: Url, *, is_private: bool) -> None:
        """Raises an error if it may not be sent to a URL.

        `is_private` says that the request goes, without a proxy, to a host and port that the
        settings allow to be private.
        """
        if not any(each.matches(url) for each in self.hosts):
            hosts = ", ".join(map(str, self.hosts)) or "no host"
            raise PermissionDeniedError(
                f"The secret {self.name!r} is for {hosts}, not for {url.host_port}.",
                next_actions=[
                    "Leave secret out, or ask for a URL on a host that it is for.",
                    f"To allow it, the user adds the host to secrets.{self.name}.hosts.",
                ],
            )
        if url.scheme != "https" and not is_private:
            raise PermissionDeniedError(
                f"The secret {self.name!r} is sent over https alone, not to {url}.",
                next_actions=["Ask for the same URL with https."],
            )

    def put_into(self, target: str, headers: list[tuple[str, str]], value: str) -> RequestTarget:
        """Adds the value to a request."""
        if any(name.lower() == "range" for name, _ in headers):
            raise InvalidArgumentsError(
                "A request with a secret asks for the whole answer, not for a Range of it.",
                next_actions=["Leave 'Range' out of headers."],
            )
        encoded = {"secret": value, "base64": b64encode(value.encode()).decode()}
        sent = PLACE.sub(lambda found: encoded[found[1]], self.form)
        if self.query:
            return self._with_query(target, sent), headers
        if any(name.lower() == self.header.lower() for name, _ in headers):
            raise InvalidArgumentsError(
                f"The header {self.header!r} is what the secret {self.name!r} is sent in.",
                next_actions=[f"Leave {self.header!r} out of headers."],
            )
        if not sent.isascii():
            raise self.unusable("has characters that no header can have")
        return target, [*headers, (self.header, sent)]

    def unusable(self, how: str) -> UnavailableError:
        """Returns the error for an unusable value."""
        return UnavailableError(
            f"The secret {self.name!r} {how}.",
            next_actions=["The user looks at it where the settings say that it is."],
        )

    def is_for(self, words: Sequence[Word]) -> bool:
        """Returns whether a command gets it."""
        return any(each.matches(words) for each in self.programs)

    def check_value(self, value: str) -> None:
        """Raises an error unless a value can be used, and be redacted in answers."""
        if problem := value_problem(value):
            raise self.unusable(problem)

    def _with_query(self, target: str, sent: str) -> str:
        path, _, query = target.partition("?")
        given = query.split("&") if query else []
        # A redirect may repeat the value, which was redacted in its address.
        own = [each for each in given if unquote_plus(each.partition("=")[0]) == self.query]
        if any(unquote_plus(each.partition("=")[2]) != marker(self.name) for each in own):
            raise InvalidArgumentsError(
                f"The parameter {self.query!r} is what the secret {self.name!r} is sent in.",
                next_actions=[f"Leave {self.query!r} out of the URL."],
            )
        others = [each for each in given if each not in own]
        return f"{path}?" + "&".join(
            [*others, f"{quote(self.query, safe='')}={quote(sent, safe='')}"]
        )


def value_problem(value: str) -> str:
    """Returns why a value cannot be used, or be redacted in answers; empty if it can."""
    if not SHORTEST <= len(value) <= LONGEST:
        return (
            f"has {len(value)} characters: only one of {SHORTEST} to {LONGEST} can be taken out of"
            " answers"
        )
    return "" if value.isprintable() else "has line ends or characters that cannot be seen"


class Secrets:
    """Knows the secrets, and reads their values on each use."""

    def __init__(
        self,
        secrets: Iterable[Secret] = (),
        *,
        environ: Mapping[str, str] | None = None,
        redaction: Redaction | None = None,
    ) -> None:
        self._secrets = {each.name: each for each in secrets}
        self.for_programs = tuple(each for each in self._secrets.values() if each.programs)
        self._environ = environ or {}
        self.redaction = redaction or Redaction()

    def find(self, name: str) -> Secret:
        """Returns the secret with this name that requests may use."""
        usable = {each.name: each for each in self._secrets.values() if each.hosts}
        if name in usable:
            return usable[name]
        meant = nearest(name, usable)
        known = f"there are: {', '.join(usable)}" if usable else "the settings name none"
        raise InvalidArgumentsError(
            f"secret: {name[:64]!r} is unknown; {known}.",
            suggestions=[meant] if meant else [],
            next_actions=["Give an existing name, or leave secret out."],
        )

    def of_line(self, line: str) -> tuple[Secret, ...]:
        """Returns the secrets for a shell line that is a single matching command."""
        words = _only_command(line)
        return tuple(each for each in self.for_programs if words and each.is_for(words))

    async def value(self, secret: Secret) -> str:
        """Returns the value of a secret, which is redacted everywhere from now on."""
        # The keyring may wait for the user.
        return await anyio.to_thread.run_sync(self.read, secret, abandon_on_cancel=True)

    def read(self, secret: Secret) -> str:
        """As `value`; blocks."""
        try:
            value = secret.origin.read(self._environ).strip()
        except UnavailableError as error:
            raise UnavailableError(
                f"The secret {secret.name!r} cannot be used: {error.message}.",
                next_actions=error.next_actions,
            ) from error
        secret.check_value(value)
        self.redaction.learn(secret.name, value)
        return value

    async def variables(
        self, secrets: Sequence[Secret], *, confined: bool
    ) -> tuple[dict[str, str], tuple[str, ...]]:
        """Returns the variables of a program that gets secrets, with notes.

        An unconfined program gets none: others could read them from it.
        """
        if not confined:
            notes = (
                f"It was not given the secret {each.name}: programs run unconfined here."
                for each in secrets
            )
            return {}, tuple(notes)
        values = {each.variable: await self.value(each) for each in secrets}
        given = (f"It was given the secret {each.name} as {each.variable}." for each in secrets)
        return values, tuple(given)


def _only_command(line: str) -> Sequence[Word]:
    """Returns the words of a line that is a single command; else empty."""
    from tools.policy.shell.shell_command import ShellCommand  # loads the parser

    plain = ShellCommand.parse(line).plain
    if plain is None or len(plain.commands) != 1:
        return ()
    (words,) = plain.commands
    try:
        # No assignments, redirections or expansions.
        is_bare = [word.text for word in words] == shlex.split(line)
    except ValueError:
        return ()
    return words if is_bare and not any(word.is_glob for word in words) else ()
