"""A tool call as rules see it, and the decision on it."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tools.core.spec import Effect, SubjectKind, ToolScope, ToolSpec
from tools.policy.paths import Address, first_component
from tools.sandbox.files.protect import OBEYED, Name, closed_names

if TYPE_CHECKING:
    from tools.policy.shell.words import Word

T = TypeVar("T")

SETTINGS = "settings"
GRANT = "grant"
TOOL = "tool"  # the source of decisions by the tool itself


class Containment(IntEnum):
    """How well the programs of a call are confined."""

    NONE = 0
    CONFINED = 1
    OFFLINE = 2
    """Confined, and without network access."""


class Verdict(StrEnum):
    """Whether a call may run."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision on a call, with its source."""

    verdict: Verdict
    rule: str  # the text of the deciding rule, such as `bash(git status *)`
    source: str  # the origin of that rule: "settings", "profile standard", TOOL, "grant 3f9a21c4"
    reason: str  # the reason, a sentence that names what the rule matched
    # The decisions on the parts of a call (commands of a shell), if it has several.
    parts: tuple[str, ...] = ()
    # The words of the commands that ask only because no rule matches them.
    uncovered: tuple[tuple[Word, ...], ...] = ()

    @classmethod
    def by_rule(cls, verdict: Verdict, rule: str, what: str, source: str) -> Decision:
        """Returns what a rule decides; `what` continues a sentence about the rule."""
        return cls(verdict, rule, source, f"The rule {rule!r} {what}.")

    def asking(self, unheld: Mapping[str, str]) -> Decision:
        """Makes the user approve a call whose programs are not held to some rules."""
        if not unheld or self.verdict is Verdict.DENY:
            return self
        said = (
            f"The rule {rule!r} is not enforced for programs, as {why}."
            for rule, why in unheld.items()
        )
        reason = " ".join((*said, *([self.reason] if self.verdict is Verdict.ASK else [])))
        return Decision(Verdict.ASK, next(iter(unheld)), "settings", reason, self.parts)


def stricter(one: Decision, other: Decision) -> Decision:
    """Returns the stricter of two decisions; the first if they are equally strict."""
    order = (Verdict.ALLOW, Verdict.ASK, Verdict.DENY)
    return other if order.index(other.verdict) > order.index(one.verdict) else one


@dataclass(frozen=True)
class Call:
    """A call of a tool."""

    spec: ToolSpec
    arguments: Mapping[str, Any]  # its validated arguments
    roots: tuple[str, ...]  # the absolute root, in each of its spellings

    @property
    def kind(self) -> SubjectKind | None:
        """The kind of its subject, which decides how rules compare it."""
        return self.spec.subject.kind if self.spec.subject else None

    def argument(self, name: str) -> Any:  # noqa: ANN401  # any JSON value
        """Returns an argument as given, else its default, else None."""
        if name in self.arguments:
            return self.arguments[name]
        return self.spec.input_schema.get("properties", {}).get(name, {}).get("default")

    @cached_property
    def subject(self) -> str | None:
        """Its subject as given; None if it has none."""
        about = self.spec.subject
        if about is None:
            return None
        given = self.argument(about.parameter)
        if given is None and about.read is not None:
            given = about.read(self.arguments)
        if given is None and about.acts is not None:
            paths = {act.path for act in about.acts(self.arguments)}
            given = paths.pop() if len(paths) == 1 else None
        return None if given is None else str(given)

    @cached_property
    def path(self) -> str | None:
        """The path of its subject, relative to the root; None if it is not about a path.

        For a tool that works inside the root, a missing path means the whole root.
        """
        if self.kind is not SubjectKind.PATH:
            return None
        given = self.subject
        if given is None:
            return "." if self.spec.scope is ToolScope.SANDBOXED else None
        return relative_path(given, self.roots)

    @cached_property
    def config_files(self) -> frozenset[Name]:
        """The names of configuration files that a built-in tool writes to.

        Empty if one of the names in its path is closed for good.
        """
        if self.path is None or self.spec.source != "builtin" or not writes_files(self.spec):
            return frozenset()
        found = frozenset(closed_names(self.path.split("/")))
        return found if found <= OBEYED.keys() else frozenset()

    @cached_property
    def address(self) -> Address | None:
        """Its URL; None if programs might parse it differently."""
        try:
            return Address.parse(self.subject or "")
        except ValueError:
            return None

    @property
    def keys(self) -> tuple[str, ...] | None:
        """The keys (`Form.key`) of the rules that could match it; None if any rule could."""
        match self.kind:
            case SubjectKind.PATH:
                return () if self.path is None else first_component(self.path)
            case SubjectKind.URL:
                return None if self.address is None else (self.address.host,)
            case _:
                return ()

    @property
    def secret_parameter(self) -> str:
        """The parameter that names a secret; empty if there is none."""
        return self.spec.subject.secret if self.spec.subject else ""

    @property
    def secret(self) -> str | None:
        """The name of the secret it uses, if any."""
        given = self.arguments.get(self.secret_parameter)
        return None if given is None else str(given)

    @property
    def method(self) -> str:
        """The HTTP method of the request."""
        fixed = self.spec.subject.method if self.spec.subject else ""
        return fixed or str(self.argument("method") or "GET").upper()


def reads_files(spec: ToolSpec) -> bool:
    """Returns whether a tool with a path reads the file."""
    return Effect.READ in spec.effects or not writes_files(spec)


def writes_files(spec: ToolSpec) -> bool:
    """Returns whether a tool with a path changes the file.

    Tools of scope context change only the store, except for the user's functions.
    """
    only_stores = spec.scope is ToolScope.CONTEXT and not spec.is_function
    return Effect.WRITE in spec.effects and not only_stores


def relative_path(path: str, roots: Sequence[str]) -> str | None:
    """Normalizes a path relative to the root, without resolving links; None if it leads out."""
    if path.startswith("/"):
        absolute = "/" + posixpath.normpath(path).lstrip("/")
        for root in roots:
            if absolute == root or absolute.startswith(root.rstrip("/") + "/"):
                return absolute[len(root) :].strip("/") or "."
        return None
    if path and "/" not in path and path not in {".", ".."}:
        return path
    normal = posixpath.normpath(path)
    return None if normal == ".." or normal.startswith("../") else normal


class Index(Generic[T]):
    """Rules in order, indexed by key; any call may match a rule whose key is None."""

    def __init__(self, rules: Sequence[T], key: Callable[[T], str | None]) -> None:
        self.rules = tuple(rules)
        self._always: list[int] = []
        self._by_key: dict[str, list[int]] = {}
        for place, rule in enumerate(self.rules):
            found = key(rule)
            places = self._always if found is None else self._by_key.setdefault(found, [])
            places.append(place)

    def about(self, keys: Collection[str] | None) -> Sequence[T]:
        """Returns the rules that could match a call with these keys (None: unknown), in order."""
        if keys is None:
            return self.rules
        places = list(self._always)
        for key in keys:
            places += self._by_key.get(key, ())
        return [self.rules[place] for place in sorted(places)]
