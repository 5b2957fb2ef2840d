"""Rules: `Selector` or `Selector(specifier)`, as people write them in the settings."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from tools.core.spec import Effect, ToolScope, ToolSpec
from tools.policy.forms import FORMS, LineForm, PathForm
from tools.policy.shell.open_ended import open_ended
from tools.policy.specifiers import Arguments
from tools.policy.wildcards import Wildcard

NAME = re.compile(r"[A-Za-z0-9_.*-]+")
KINDS = ("scope", "effect", "only", "tag", "source")
PLACES = {"read": Effect.READ, "write": Effect.WRITE}


@dataclass(frozen=True, slots=True)
class Selector:
    """Conditions on a tool, all of which have to hold.

    Attributes:
        names: Patterns of its name or an alias.
        scopes: Where its calls are routed.
        effects: Effects that it has.
        only: Effects besides which it has none; None where that does not matter.
        tags: Groups that it belongs to; its server's name is none, as that may be that of a group.
        sources: Where it comes from, whole or up to the colon.
    """

    names: tuple[Wildcard, ...] = ()
    scopes: tuple[ToolScope, ...] = ()
    effects: tuple[Effect, ...] = ()
    only: frozenset[Effect] | None = None
    tags: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Selector:
        """Reads names and `kind:value`, joined by `+`.

        Raises:
            ValueError: If one of them is unknown, or no tool can fit all.
        """
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
        scopes = tuple(ToolScope(_known(value, ToolScope)) for value in found["scope"])
        if len(set(scopes)) > 1:
            raise ValueError(f"no tool has two scopes ({text!r})")
        return cls(
            names=tuple(map(Wildcard.parse, found["name"])),
            scopes=scopes,
            effects=tuple(Effect(_known(value, Effect)) for value in found["effect"]),
            only=_only(found["only"]),
            tags=tuple(found["tag"]),
            sources=tuple(found["source"]),
        )

    @property
    def name(self) -> str:
        """The tool's name, where it is one name and nothing else; empty otherwise."""
        alone = not (self.scopes or self.effects or self.only or self.tags or self.sources)
        return (self.names[0].literal or "") if alone and len(self.names) == 1 else ""

    @property
    def place_effect(self) -> Effect | None:
        """What is done to a place, of the selectors `read` and `write`, which need a path."""
        return PLACES.get(self.name)

    def other_name(
        self, spec: ToolSpec, find: Callable[[str], ToolSpec | None], allows: bool
    ) -> str:
        """The name beside its own by which it means a tool; empty where there is none.

        What a tool can be called by, it can be denied by. Another server's is allowed by its full
        name alone, and one of ours by what really reaches it.

        Args:
            spec: The tool.
            find: Gives the tool that a name reaches.
            allows: Whether the rule allows.
        """
        name = spec.bare or self.name
        if not name or (spec.bare and allows) or not (spec.bare or spec.goes_by(name)):
            return ""
        found = find(name)
        if spec.bare:
            return name if found is None or found.server else ""
        is_reached = found is not None and found.name == spec.name
        return name if is_reached or not allows else ""

    def fits(self, spec: ToolSpec, bare: str = "") -> bool:
        """Whether a tool is one of those.

        Args:
            spec: The tool.
            bare: A name beside its own that counts here; empty for none.
        """
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


def _known(value: str, choices: type[ToolScope | Effect]) -> str:
    known = [each.value for each in choices]
    if value not in known:
        raise ValueError(f"{value!r} is none of {', '.join(known)}")
    return value


def _only(values: list[str]) -> frozenset[Effect] | None:
    if not values:
        return None
    each = [{Effect(_known(one.strip(), Effect)) for one in value.split(",")} for value in values]
    return frozenset(set.intersection(*each))


RULE = re.compile(r"([^()]+?)\s*(?:\((.*)\))?", re.DOTALL)
EXAMPLES = "Rules look like bash, bash(git status *), write_file(src/**) or scope:system."


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        text: As it is written.
        selector: Which tools it is about.
        specifier: Which calls of them, as it is written; empty for all.
        arguments: The same, where it compares arguments by name.
    """

    text: str
    selector: Selector
    specifier: str
    arguments: Arguments | None

    @classmethod
    def parse(cls, text: str) -> Rule:
        """Reads a rule.

        Raises:
            ValueError: If it cannot be read or can never match; it says why, with an example.
        """
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
        elif form := next((each for each in FORMS.values() if each.is_meant(specifier)), None):
            form.parse(specifier)
        return cls(text, selector, specifier, None)

    def names(self, parameter: str) -> bool:
        """Whether it says something of an argument by its name."""
        return self.arguments is not None and parameter in self.arguments.wanted

    def problem(self, spec: ToolSpec) -> str:
        """Why it can match no call of a tool that it names; empty where it can."""
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
        """What it stands for beyond what it seems to, of the calls of a tool; empty for nothing."""
        if not self.specifier or self.arguments is not None or self.problem(spec):
            return ""
        form = None if spec.subject is None else FORMS[spec.subject.kind].parse(self.specifier)
        return "; ".join(open_ended(form.pattern)) if isinstance(form, LineForm) else ""
