"""Forms of specifiers: how what stands in the parentheses of a rule is read and compared.

A tool's calls are about a command, a path or a URL (`SubjectKind`), and each kind has its form in
`FORMS`; any tool's calls can be told apart by their arguments. A new form is one more class here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol, Self

from tools.core.spec import Confirmation, Effect, SubjectKind, ToolScope, ToolSpec
from tools.policy.calls import Call
from tools.policy.paths import PathPattern, path_rule
from tools.policy.shell.command_match import Match
from tools.policy.shell.shell_command import ShellCommand
from tools.policy.shell.words import LinePattern, line_rule
from tools.policy.specifiers import Arguments
from tools.policy.urls import UrlPattern, url_rule


class Form(Protocol):
    """What a specifier says of the calls of a tool.

    Attributes:
        is_about_subject: Whether it says something of what a call is about.
    """

    is_about_subject: ClassVar[bool]

    @property
    def key(self) -> str | None:
        """One of the keys of every call that it means (`Call.keys`); None where it may be any."""

    def forbids(self, call: Call) -> Match:
        """Returns how surely a call is one that such a rule denies, or asks about."""

    def permits(self, call: Call) -> bool:
        """Returns whether a call is one that such a rule allows."""


class SubjectForm(Form, Protocol):
    """A form for the calls of tools that are about one kind of subject."""

    @classmethod
    def parse(cls, text: str, roots: tuple[str, ...] = ()) -> Self:
        """Reads a specifier.

        Args:
            text: What stands in the parentheses.
            roots: The root, absolute, in each of its spellings.

        Raises:
            ValueError: If it can never match.
        """

    @classmethod
    def is_meant(cls, text: str) -> bool:
        """Returns whether a specifier can be of no other form, whatever the tool."""

    @classmethod
    def narrowest(cls, call: Call) -> str:
        """Returns the specifier that means little more than a call; empty where there is none."""


@dataclass(frozen=True, slots=True)
class ArgumentsForm:
    """Conditions on arguments; without any it means every call."""

    conditions: Arguments | None
    is_about_subject: ClassVar = False
    key: ClassVar = None

    def forbids(self, call: Call) -> Match:
        """Returns `YES` for a call that fits, else `NO`."""
        return Match.YES if self.permits(call) else Match.NO

    def permits(self, call: Call) -> bool:
        """Returns whether the arguments of a call fit."""
        conditions = self.conditions
        return conditions is None or conditions.match(call.argument)


EVERY_CALL = ArgumentsForm(None)


@dataclass(frozen=True, slots=True)
class LineForm:
    """A line of a shell. Calls are judged by each of the commands in them (`LineRules`)."""

    pattern: LinePattern
    is_about_subject: ClassVar = True
    key: ClassVar = None

    @classmethod
    def parse(cls, text: str, _roots: tuple[str, ...] = ()) -> Self:
        """Reads a line such as `git push *`."""
        return cls(LinePattern.parse(text))

    @classmethod
    def is_meant(cls, text: str) -> bool:
        """Returns whether there is a blank in it: a path that has some escapes them."""
        return " " in text

    @classmethod
    def sets_variable(cls, text: str) -> bool:
        """Returns whether it begins with a variable in capitals, such as `CI=1 npm test`."""
        try:
            return _VARIABLE.match(text) is not None and bool(LinePattern.parse(text))
        except ValueError:  # no command follows
            return False

    @classmethod
    def narrowest(cls, call: Call) -> str:
        """Returns the line itself, where all of it can be seen."""
        plain = ShellCommand.parse(call.subject or "").plain
        if plain is None or plain.operators is None or not plain.only_runs:
            return ""
        return line_rule(plain.commands, plain.operators)

    def forbids(self, _call: Call) -> Match:
        """Returns `MAYBE`: the line as a whole does not tell."""
        return Match.MAYBE

    def permits(self, _call: Call) -> bool:
        """Returns False: the line as a whole does not tell."""
        return False


@dataclass(frozen=True, slots=True)
class PathForm:
    """Paths beneath the root."""

    pattern: PathPattern
    is_about_subject: ClassVar = True

    @classmethod
    def parse(cls, text: str, roots: tuple[str, ...] = ()) -> Self:
        """Reads a path such as `src/**`."""
        return cls(PathPattern.parse(text, roots))

    @classmethod
    def is_meant(cls, _text: str) -> bool:
        """Returns False: a command may look like a path."""
        return False

    @classmethod
    def narrowest(cls, call: Call) -> str:
        """Returns the path itself."""
        return "" if call.path is None else path_rule(call.path)

    @property
    def key(self) -> str | None:
        """The first component, where every path that it means has the same."""
        return self.pattern.first

    def forbids(self, call: Call) -> Match:
        """Returns `YES` also for what is beneath, as forgiving file systems compare names."""
        is_covered = call.path is not None and self.pattern.covers(call.path)
        return Match.YES if is_covered else Match.NO

    def permits(self, call: Call) -> bool:
        """Returns whether it names the path exactly."""
        return call.path is not None and self.pattern.matches(call.path)


@dataclass(frozen=True, slots=True)
class UrlForm:
    """Requests by method and URL."""

    pattern: UrlPattern
    is_about_subject: ClassVar = True

    @classmethod
    def parse(cls, text: str, _roots: tuple[str, ...] = ()) -> Self:
        """Reads a URL such as `GET https://example.com/**`."""
        return cls(UrlPattern.parse(text))

    @classmethod
    def is_meant(cls, text: str) -> bool:
        """Returns whether it begins like a URL, perhaps with methods before it."""
        return _URL_LIKE.match(text) is not None

    @classmethod
    def narrowest(cls, call: Call) -> str:
        """Returns the method and the whole of the origin."""
        return url_rule(call.method, call.subject or "")

    @property
    def key(self) -> str | None:
        """The host, where it is one."""
        return None if self.pattern.host.startswith("*") else self.pattern.host

    def forbids(self, call: Call) -> Match:
        """Returns `YES` also for what is beneath, and `MAYBE` where programs read URLs apart."""
        if call.address is None:
            return Match.MAYBE
        is_covered = self.pattern.matches(call.method, call.address, beneath=True)
        return Match.YES if is_covered else Match.NO

    def permits(self, call: Call) -> bool:
        """Returns whether it names the request exactly."""
        address = call.address
        return address is not None and self.pattern.matches(call.method, address, beneath=False)


_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*=")
_SECRET_NAME = re.compile(r"[a-z0-9_-]+")
_URL_LIKE = re.compile(r"([A-Z]+(,[A-Z]+)*\s+)?[A-Za-z][A-Za-z0-9+.-]*://")

FORMS: Mapping[SubjectKind, type[SubjectForm]] = {
    SubjectKind.URL: UrlForm,
    SubjectKind.COMMAND: LineForm,
    SubjectKind.PATH: PathForm,
}
"""The form of each kind of subject, in the order in which a specifier is taken for one of them."""


def narrowest_rule(call: Call) -> str:
    """Returns a rule that means little more than a call; empty where there is none.

    Whether it would allow the call again is not looked at.
    """
    spec = call.spec
    if call.kind is None or (call.kind is SubjectKind.PATH and call.subject is None):
        return spec.name if may_be_granted_whole(spec) else ""
    if call.kind is SubjectKind.PATH and spec.prepare is not None:  # what it holds may change
        return f"{spec.name}(digest={digest})" if (digest := call.argument("digest")) else ""
    specifier = FORMS[call.kind].narrowest(call)
    if call.secret is not None:
        specifier = _with_secret(call, specifier)
    return f"{spec.name}({specifier})" if specifier else ""


def _with_secret(call: Call, url_pattern: str) -> str:
    """The conditions that stand for a secret, a method and the whole of the origin."""
    method, _, origin = url_pattern.removesuffix("**").partition(" ")
    about = call.spec.subject and call.spec.subject.parameter
    if not origin or not _SECRET_NAME.fullmatch(call.secret or ""):
        return ""
    return f"{call.secret_parameter}={call.secret}, method={method}, {about}={origin}*"


def may_be_granted_whole(spec: ToolSpec) -> bool:
    """Returns whether a tool may be allowed whatever it is given, by an answer to one call."""
    is_grave = spec.destructive or spec.confirmation is Confirmation.REQUIRED or spec.passes_on
    return not is_grave and not runs_anything(spec)


def runs_anything(spec: ToolSpec) -> bool:
    """Returns whether a tool runs programs or code that it is given."""
    return Effect.EXECUTE in spec.effects and spec.scope is ToolScope.SYSTEM
