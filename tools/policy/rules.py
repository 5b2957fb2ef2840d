"""Rules, as users write them in the settings, and the profiles written as such rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tools.conversion.arguments.known_names import sent_as
from tools.core.spec import Effect, ToolScope, ToolSpec
from tools.policy.calls import TOOL, Call, Containment, Decision, Verdict
from tools.policy.forms import FORMS, Arguments, LineForm, PathForm
from tools.policy.shell.interpreters import CODE, INTERPRETERS, SHELLS
from tools.policy.shell.operands import RUNNERS, RUNNING_WORDS
from tools.policy.shell.words import CommandPattern, LinePattern, Wildcard
from tools.policy.shell.wrappers import INVISIBLE

_BUILDS = frozenset({"make", "gmake", "ninja", "just", "rake", "gradle", "mvn", "ant", "bazel"})
_SUBCOMMANDS = frozenset({"git", "hg", "svn", "cargo", "dotnet", *RUNNING_WORDS, *RUNNERS})
_EXAMPLES = {"git": "git status *", "make": "make test", "npm": "npm test *", "uv": "uv sync *"}


def open_ended(line: LinePattern) -> Iterator[str]:
    """Yields the name of each unrestricted program, and what a rule should name."""
    for command in line.commands:
        name = command.name
        if name and _is_open(command, name) and (advice := _advice(name)):
            yield f"{name} can be made to run: {advice}"


def _is_open(command: CommandPattern, name: str) -> bool:
    """Returns whether a pattern names only a program, or lets it run its arguments."""
    if len(command.words) == 1:
        return False
    first, *others = command.words[1:]
    if first is None or not _runs_code(name):
        return first is None
    return CODE.fullmatch(first.text) is not None and None in others


def _runs_code(name: str) -> bool:
    return name in SHELLS or INTERPRETERS.fullmatch(name) is not None


def _advice(name: str) -> str:
    example = f", as in bash({_EXAMPLES[name]})" if name in _EXAMPLES else ""
    if name in _BUILDS:
        return f"name the targets{example}"
    if name in _SUBCOMMANDS:
        return f"name the subcommands{example}"
    if _runs_code(name):
        return f"name the files, as in bash({name} scripts/check *)"
    return f"name what it runs, as in bash({name} NAME *)" if name in INVISIBLE else ""


NAME = re.compile(r"[A-Za-z0-9_.*-]+")
KINDS = ("scope", "effect", "only", "tag", "source")
PLACES = {"read": Effect.READ, "write": Effect.WRITE}


@dataclass(frozen=True, slots=True)
class Selector:
    """Conditions on a tool, all of which must hold."""

    names: tuple[Wildcard, ...] = ()  # patterns for its name or an alias
    scopes: tuple[ToolScope, ...] = ()  # the scopes of its calls
    effects: tuple[Effect, ...] = ()  # effects it must have
    only: frozenset[Effect] | None = None  # the only effects it may have, if limited
    # Its groups; the server's name does not count, as it may also be the name of a group.
    tags: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()  # its source, either whole or up to the colon

    @classmethod
    def parse(cls, text: str) -> Selector:
        """Parses names and `kind:value`, joined by `+`; a ValueError says what is wrong."""
        found: dict[str, list[str]] = {kind: [] for kind in ("name", *KINDS)}
        for part in text.split("+"):
            kind, colon, value = part.strip().partition(":")
            if not colon:
                kind, value = "name", kind
            if kind not in found:
                raise ValueError(
                    f"{part!r} is not a selector; known are a tool's name and "
                    + ", ".join(f"{each}:…" for each in KINDS)
                )
            if not value or (kind == "name" and not NAME.fullmatch(value)):
                raise ValueError(f"{part!r} names no tool; write a name such as bash or read_*")
            found[kind].append(value)
        scopes = tuple(ToolScope(_check_value(value, ToolScope)) for value in found["scope"])
        if len(set(scopes)) > 1:
            raise ValueError(f"no tool has two scopes ({text!r})")
        return cls(
            names=tuple(map(Wildcard.parse, found["name"])),
            scopes=scopes,
            effects=tuple(Effect(_check_value(value, Effect)) for value in found["effect"]),
            only=frozenset.intersection(*map(_effects, found["only"])) if found["only"] else None,
            tags=tuple(found["tag"]),
            sources=tuple(found["source"]),
        )

    @property
    def name(self) -> str:
        """The tool's name, if it is the only condition and not a pattern; else empty."""
        alone = not (self.scopes or self.effects or self.only or self.tags or self.sources)
        return (self.names[0].literal or "") if alone and len(self.names) == 1 else ""

    @property
    def place_effect(self) -> Effect | None:
        """The effect of the selectors `read` and `write`, which need a path."""
        return PLACES.get(self.name)

    def other_name(
        self, spec: ToolSpec, find: Callable[[str], ToolSpec | None], allows: bool
    ) -> str:
        """Returns another name by which it means a tool; empty if there is none.

        Deny rules match every name a tool can be called by. Allow rules match a tool of another
        server only by its full name, and one of ours only by a name that really reaches it.
        """
        name = spec.bare or self.name
        if not name or (spec.bare and allows) or not (spec.bare or _is_called(spec, name)):
            return ""
        found = find(name)
        if spec.bare:
            return name if found is None or found.server else ""
        is_reached = found is not None and found.name == spec.name
        return name if is_reached or not allows else ""

    def fits(self, spec: ToolSpec, bare: str = "") -> bool:
        """Returns whether a tool, perhaps by another name (`bare`), meets the conditions."""
        return (
            all(scope is spec.scope for scope in self.scopes)
            and spec.effects.issuperset(self.effects)
            and (self.only is None or spec.effects <= self.only)
            and all(tag in spec.tags and tag != spec.server for tag in self.tags)
            and all(
                source in {spec.source, spec.source.partition(":")[0]} for source in self.sources
            )
            and all(
                any(name.matches(each) for each in (spec.name, *spec.aliases, bare) if each)
                for name in self.names
            )
        )


def _is_called(spec: ToolSpec, name: str) -> bool:
    """Returns whether a tool goes by a name, or changes files in some calls under it."""
    changes = spec.source == "builtin" and spec.scope is ToolScope.SANDBOXED and not spec.read_only
    return spec.goes_by(name) or (changes and sent_as(name, spec.name))


def _check_value(value: str, choices: type[ToolScope | Effect]) -> str:
    known = [each.value for each in choices]
    if value not in known:
        raise ValueError(f"{value!r} is not one of {', '.join(known)}")
    return value


def _effects(text: str) -> frozenset[Effect]:
    return frozenset(Effect(_check_value(each.strip(), Effect)) for each in text.split(","))


RULE = re.compile(r"([^()]+?)\s*(?:\((.*)\))?", re.DOTALL)
EXAMPLES = "Rules look like bash, bash(git status *), write_file(src/**) or scope:system."


@dataclass(frozen=True, slots=True)
class Rule:
    """A policy rule."""

    text: str
    selector: Selector
    specifier: str  # the text that selects calls; empty for all calls
    arguments: Arguments | None  # the same, if it compares arguments by name

    @classmethod
    def parse(cls, text: str) -> Rule:
        """Parses a rule; the ValueError of one that is wrong or cannot match has an example."""
        try:
            return cls._parse(text)
        except ValueError as error:
            raise ValueError(f"The rule {text!r} is wrong: {error}. {EXAMPLES}") from None

    @classmethod
    def _parse(cls, text: str) -> Rule:
        if not text.strip() or not text.isprintable():
            raise ValueError("it is empty or has characters that cannot be seen")
        found = RULE.fullmatch(text.strip())
        if found is None:
            raise ValueError("its parentheses do not match")
        selector = Selector.parse(found[1])
        specifier = found[2]
        if specifier is None and selector.place_effect is not None:
            raise ValueError(f"say which paths: '{found[1]}(secrets/**)', or 'effect:{found[1]}'")
        if specifier is None:
            return cls(text, selector, "", None)
        specifier = specifier.strip()
        if not specifier:
            raise ValueError("its parentheses are empty; leave them out to cover every call")
        is_line = LineForm.sets_variable(specifier)
        if selector.place_effect is None and Arguments.begin(specifier) and not is_line:
            return cls(text, selector, specifier, Arguments.parse(specifier))
        if selector.place_effect is not None:
            PathForm.parse(specifier)
        elif form := next(
            (form for form in FORMS.values() if form.meant and form.meant.match(specifier)), None
        ):
            form.parse(specifier)
        return cls(text, selector, specifier, None)

    def names(self, parameter: str) -> bool:
        """Returns whether it compares an argument by name."""
        return self.arguments is not None and parameter in self.arguments.wanted

    def problem(self, spec: ToolSpec) -> str:
        """Returns why it can match no call of a tool that it names; empty if it can."""
        if not self.specifier:
            return ""
        if self.arguments is not None:
            unknown = self.arguments.unknown(spec.input_schema)
            return f"{spec.name} has no parameter {', '.join(unknown)}" if unknown else ""
        if spec.subject is None:
            return f"calls of {spec.name} are told apart by arguments only, as in (name=value)"
        try:
            FORMS[spec.subject.kind].parse(self.specifier)
        except ValueError as error:
            return str(error)
        return ""

    def excess(self, spec: ToolSpec) -> str:
        """Returns what it matches beyond its apparent meaning; empty for nothing."""
        if not self.specifier or self.arguments is not None or self.problem(spec):
            return ""
        form = None if spec.subject is None else FORMS[spec.subject.kind].parse(self.specifier)
        return "; ".join(open_ended(form.pattern)) if isinstance(form, LineForm) else ""


@dataclass(frozen=True, slots=True)
class ProfileRule:
    """A rule of a profile; the first match decides."""

    verdict: Verdict
    rule: Rule
    reason: str
    needs: Containment = Containment.NONE  # minimum containment for the rule to apply


def _rule(
    verdict: Verdict, text: str, reason: str, needs: Containment = Containment.NONE
) -> ProfileRule:
    return ProfileRule(verdict, Rule.parse(text), reason, needs)


_ALLOW, _ASK, _DENY = Verdict.ALLOW, Verdict.ASK, Verdict.DENY
_PROGRAMS = "scope:system+effect:execute"
_AGENTS = _rule(
    _ASK, f"{_PROGRAMS}+effect:external", "It gives work to another program, or to a service."
)
_UNCONFINED = _rule(_ASK, _PROGRAMS, "What it runs is not confined.")
_CREATED = "source:created"
_CREATED_CONFINED = _rule(
    _ALLOW, _CREATED, "Its source was approved, and it runs confined.", Containment.CONFINED
)
_CREATED_FREE = _rule(_ASK, _CREATED, "An agent wrote what it runs, and that is not confined.")
_CHANGES_NOTHING = "It runs confined and changes nothing; each call that it makes is judged itself."
_OWN = (
    _rule(_ALLOW, "scope:sandboxed", "It stays beneath the root."),
    _rule(_ALLOW, "scope:context", "It works on stored context."),
    _rule(_ALLOW, "source:function", "It is a function of the user's own."),
)
_BEYOND = (
    _rule(_ASK, "scope:system+effect:external", "It reaches beyond this machine."),
    _rule(_ALLOW, "scope:system", "It runs nothing new."),
    _rule(_ALLOW, "scope:mcp+only:read", "It only reads, on another server."),
    _rule(_ASK, "scope:mcp", "It runs on another server, and does not only read."),
)

PROFILES: dict[str, tuple[ProfileRule, ...]] = {
    "read-only": (
        _rule(_ALLOW, "run_code", _CHANGES_NOTHING, Containment.OFFLINE),
        _rule(_ALLOW, _CREATED, _CHANGES_NOTHING, Containment.OFFLINE),
        _rule(_ALLOW, "scope:sandboxed+only:read", "It only reads files beneath the root."),
        _rule(_ALLOW, "scope:context+only:read", "It only reads stored context."),
        _rule(_ASK, "only:read,external", "It only reads, but not only what is stored here."),
        _rule(_DENY, "*", "The profile read-only allows no changes."),
    ),
    "cautious": (
        _rule(_ASK, _CREATED, "It runs what an agent wrote."),
        *_OWN,
        _rule(_ASK, _PROGRAMS, "It runs programs."),
        *_BEYOND,
    ),
    "standard": (
        _CREATED_CONFINED,
        _CREATED_FREE,
        *_OWN,
        _AGENTS,
        _rule(
            _ALLOW, _PROGRAMS, "What it runs is confined and has no network.", Containment.OFFLINE
        ),
        _rule(_ASK, _PROGRAMS, "What it runs reaches hosts on the network.", Containment.CONFINED),
        _UNCONFINED,
        *_BEYOND,
    ),
    "trusting": (
        _CREATED_CONFINED,
        _CREATED_FREE,
        _rule(_ALLOW, _PROGRAMS, "What it runs is confined.", Containment.CONFINED),
        _UNCONFINED,
        _rule(_ALLOW, "*", "The profile trusting allows it."),
    ),
}
"""The rules of each profile, in order of precedence."""

ASKING_TO_DELETE = frozenset({"cautious", "standard"})
"""The profiles that ask before a line that deletes much, whatever else is allowed."""


def using_secret(call: Call) -> Decision:
    """Returns every profile's decision on a call that uses a secret."""
    rule = f"{call.spec.name}({call.secret_parameter}={call.secret})"
    reason = f"It uses the secret {call.secret!r}, and no rule such as {rule!r} allows that."
    return Decision(Verdict.ASK, f"secret:{call.secret}", TOOL, reason)
