"""Forms of specifiers: parses and compares the text in the parentheses of a rule.

A tool's calls have a command, a path or a URL as their subject (`SubjectKind`), and each kind has
its form in `FORMS`. Rules for any tool can also compare arguments. To add a form, add a class here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

from tools.core.spec import Confirmation, Effect, SubjectKind, ToolScope, ToolSpec
from tools.policy.calls import Call
from tools.policy.paths import PathPattern, UrlPattern, path_rule, url_rule
from tools.policy.shell.command_match import Match
from tools.policy.shell.shell_command import ShellCommand
from tools.policy.shell.words import LinePattern, Wildcard, line_rule

NAMED = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)=")
NEXT = re.compile(r",\s*(?=[A-Za-z_][A-Za-z0-9_]*=)")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A value in a rule."""

    text: Wildcard  # the pattern for a scalar
    is_text: bool  # whether only a string matches, because the value is quoted

    def matches(self, value: object) -> bool:
        """Returns whether a value matches."""
        if isinstance(value, str):
            return self.text.matches(value)
        if self.is_text or not (value is None or isinstance(value, bool | int | float)):
            return False
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        return self.text.matches(json.dumps(value))


@dataclass(frozen=True, slots=True)
class Arguments:
    """Conditions on arguments, all of which must hold; without conditions, any call matches."""

    wanted: Mapping[str, Wanted]  # by name
    is_about_subject: ClassVar = False
    key: ClassVar = None

    @staticmethod
    def begin(text: str) -> bool:
        """Returns whether a specifier begins like conditions on arguments."""
        return NAMED.match(text) is not None

    @classmethod
    def parse(cls, text: str) -> Arguments:
        """Parses `name=value, …`; values are JSON scalars, or bare words with `*`."""
        wanted: dict[str, Wanted] = {}
        position = 0
        while found := NAMED.match(text, position):
            if found[1] in wanted:
                raise ValueError(f"{found[1]!r} appears twice in {text!r}")
            wanted[found[1]], position = _value(text, found.end())
            if position >= len(text):
                return cls(wanted)
        raise ValueError(f"{text!r} is not like 'name=value, name=value'")

    def unknown(self, schema: Mapping[str, Any]) -> list[str]:
        """Returns the names that are not parameters."""
        return [name for name in self.wanted if name not in schema.get("properties", {})]

    def forbids(self, call: Call) -> Match:
        """Returns `YES` for a matching call, else `NO`."""
        return Match.YES if self.permits(call) else Match.NO

    def permits(self, call: Call) -> bool:
        """Returns whether the arguments of a call match."""
        return all(wanted.matches(call.argument(name)) for name, wanted in self.wanted.items())


EVERY_CALL = Arguments({})


def _value(text: str, start: int) -> tuple[Wanted, int]:
    """Parses the value at a position; returns it and the position of the next name."""
    if text.startswith('"', start):
        try:
            value, end = json.JSONDecoder().raw_decode(text, start)
        except ValueError:
            raise ValueError(f"{text!r} ends within a quote") from None
        literal = re.sub(r"[\\*]", r"\\\g<0>", value)
        rest = NEXT.match(text, end)
        if rest is None and text[end:].strip():
            raise ValueError(f"{text!r}: a comma is missing after {text[start:end]}")
        return Wanted(Wildcard.parse(literal), is_text=True), rest.end() if rest else len(text)
    rest = NEXT.search(text, start)
    word = text[start : rest.start() if rest else len(text)].strip()
    return Wanted(Wildcard.parse(word), is_text=False), rest.end() if rest else len(text)


class Form(Protocol):
    """A parsed specifier, which matches calls of a tool."""

    is_about_subject: ClassVar[bool]  # whether it compares the subject of a call

    @property
    def key(self) -> str | None:
        """The key shared by all calls it matches (`Call.keys`); None if there is none."""

    def forbids(self, call: Call) -> Match:
        """Returns how surely a deny or ask rule applies to a call."""

    def permits(self, call: Call) -> bool:
        """Returns whether an allow rule applies to a call."""


class SubjectForm(Form, Protocol):
    """A form for tools whose subject is of one kind."""

    meant: ClassVar[re.Pattern[str] | None]  # how only texts of this form begin

    @classmethod
    def parse(cls, text: str, roots: tuple[str, ...] = ()) -> Self:
        """Parses the text in the parentheses; a ValueError says why it can never match."""

    @classmethod
    def narrowest(cls, call: Call) -> str:
        """Returns a specifier that matches little more than a call; empty if there is none."""


@dataclass(frozen=True, slots=True)
class LineForm:
    """A shell command line. Each command in a call is judged separately (`LineRules`)."""

    pattern: LinePattern
    is_about_subject: ClassVar = True
    key: ClassVar = None
    meant: ClassVar[re.Pattern[str] | None] = re.compile(r"[^ ]* ")  # which a path would escape

    @classmethod
    def parse(cls, text: str, _roots: tuple[str, ...] = ()) -> Self:
        """Parses a line such as `git push *`."""
        return cls(LinePattern.parse(text))

    @classmethod
    def sets_variable(cls, text: str) -> bool:
        """Returns whether it begins with an uppercase variable, such as `CI=1 npm test`."""
        try:
            return _VARIABLE.match(text) is not None and bool(LinePattern.parse(text))
        except ValueError:  # no command follows
            return False

    @classmethod
    def narrowest(cls, call: Call) -> str:
        """Returns the line itself, if all of it is visible."""
        plain = ShellCommand.parse(call.subject or "").plain
        if plain is None or plain.operators is None or not plain.only_runs:
            return ""
        return line_rule(plain.commands, plain.operators)

    def forbids(self, _call: Call) -> Match:
        """Returns `MAYBE`: the line as a whole cannot decide it."""
        return Match.MAYBE

    def permits(self, _call: Call) -> bool:
        """Returns False: the line as a whole cannot decide it."""
        return False


@dataclass(frozen=True, slots=True)
class PathForm:
    """Paths inside the root."""

    pattern: PathPattern
    is_about_subject: ClassVar = True
    meant: ClassVar[re.Pattern[str] | None] = None  # a command may look like a path

    @classmethod
    def parse(cls, text: str, roots: tuple[str, ...] = ()) -> Self:
        """Parses a path such as `src/**`."""
        return cls(PathPattern.parse(text, roots))

    @classmethod
    def narrowest(cls, call: Call) -> str:
        """Returns the path itself."""
        return "" if call.path is None else path_rule(call.path)

    @property
    def key(self) -> str | None:
        """The first component, if all matching paths share it."""
        return self.pattern.first

    def forbids(self, call: Call) -> Match:
        """Returns `YES` also for paths below it; ignores case and Unicode form."""
        is_covered = call.path is not None and self.pattern.covers(call.path)
        return Match.YES if is_covered else Match.NO

    def permits(self, call: Call) -> bool:
        """Returns whether it matches the path exactly."""
        return call.path is not None and self.pattern.matches(call.path)


@dataclass(frozen=True, slots=True)
class UrlForm:
    """Requests by method and URL."""

    pattern: UrlPattern
    is_about_subject: ClassVar = True
    meant: ClassVar[re.Pattern[str] | None] = re.compile(
        r"([A-Z]+(,[A-Z]+)*\s+)?[A-Za-z][A-Za-z0-9+.-]*://"
    )

    @classmethod
    def parse(cls, text: str, _roots: tuple[str, ...] = ()) -> Self:
        """Parses a URL such as `GET https://example.com/**`."""
        return cls(UrlPattern.parse(text))

    @classmethod
    def narrowest(cls, call: Call) -> str:
        """Returns the method and the whole origin."""
        return url_rule(call.method, call.subject or "")

    @property
    def key(self) -> str | None:
        """The host, unless it is a wildcard."""
        return None if self.pattern.host.startswith("*") else self.pattern.host

    def forbids(self, call: Call) -> Match:
        """Returns `YES` also for paths below it, and `MAYBE` for ambiguous URLs."""
        if call.address is None:
            return Match.MAYBE
        is_covered = self.pattern.matches(call.method, call.address, beneath=True)
        return Match.YES if is_covered else Match.NO

    def permits(self, call: Call) -> bool:
        """Returns whether it matches the request exactly."""
        address = call.address
        return address is not None and self.pattern.matches(call.method, address, beneath=False)


_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*=")
_SECRET_NAME = re.compile(r"[a-z0-9_-]+")

FORMS: Mapping[SubjectKind, type[SubjectForm]] = {
    SubjectKind.URL: UrlForm,
    SubjectKind.COMMAND: LineForm,
    SubjectKind.PATH: PathForm,
}
"""The form of each kind of subject, in the order in which they are tried."""


def narrowest_rule(call: Call) -> str:
    """Returns a rule that matches little more than a call; empty if there is none.

    Does not check that the rule would allow the call.
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
    """Returns conditions on the secret, the method and the whole origin."""
    method, _, origin = url_pattern.removesuffix("**").partition(" ")
    about = call.spec.subject and call.spec.subject.parameter
    if not origin or not _SECRET_NAME.fullmatch(call.secret or ""):
        return ""
    return f"{call.secret_parameter}={call.secret}, method={method}, {about}={origin}*"


def may_be_granted_whole(spec: ToolSpec) -> bool:
    """Returns whether approving one call may allow the tool with any arguments."""
    is_grave = spec.destructive or spec.confirmation is Confirmation.REQUIRED or spec.is_proxy
    return not is_grave and not runs_anything(spec)


def runs_anything(spec: ToolSpec) -> bool:
    """Returns whether a tool runs arbitrary programs or code."""
    return Effect.EXECUTE in spec.effects and spec.scope is ToolScope.SYSTEM
