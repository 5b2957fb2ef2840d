"""Rules applied to one tool: to its calls, and to the real places of the files that they open."""

from __future__ import annotations

import contextlib
import posixpath
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

from tools.core.errors import PermissionDeniedError
from tools.core.spec import Effect, SubjectKind, ToolSpec
from tools.policy.calls import (
    TOOL,
    Call,
    Decision,
    Index,
    Verdict,
    reads_files,
    relative_path,
    writes_files,
)
from tools.policy.forms import EVERY_CALL, FORMS, Form, LineForm, PathForm
from tools.policy.paths import PathPattern, first_component
from tools.policy.rules import Rule
from tools.policy.shell.command_match import Match
from tools.policy.shell.plain_line import Opened, Run
from tools.policy.shell.words import CommandPattern, LinePattern
from tools.sandbox.files.protect import OBEYED, Guard, Name, ProtectedPathError


@dataclass(frozen=True, slots=True)
class Fitted:
    """A rule as applied to one tool."""

    rule: Rule
    form: Form = EVERY_CALL
    problem: str = ""  # why it can never match a call of this tool, although it names the tool

    def forbids(self, call: Call) -> Match:
        """Returns how surely this deny or ask rule applies to a call."""
        if self.problem:  # whoever wrote the rule did not mean it to be ignored
            return Match.YES
        return self.form.forbids(call)

    def permits(self, call: Call) -> bool:
        """Returns whether this allow rule applies to a call; it must name the call's secret."""
        if call.secret is not None and not self.rule.names(call.secret_parameter):
            return False
        return not self.problem and self.form.permits(call)


def fitted(rule: Rule, spec: ToolSpec, roots: tuple[str, ...], bare: str = "") -> Fitted | None:
    """Applies a rule to a tool, which `bare` may name too; None if it is about other tools."""
    if rule.selector.place_effect is not None:
        touches = reads_files if rule.selector.place_effect is Effect.READ else writes_files
        if spec.subject is None or spec.subject.kind is not SubjectKind.PATH or not touches(spec):
            return None
        return Fitted(rule, PathForm.parse(rule.specifier, roots))
    if not rule.selector.fits(spec, bare):
        return None
    problem = rule.problem(spec)
    if problem:
        return Fitted(rule, problem=problem) if rule.selector.name else None
    if not rule.specifier or rule.arguments is not None or spec.subject is None:
        return Fitted(rule, rule.arguments or EVERY_CALL)
    return Fitted(rule, FORMS[spec.subject.kind].parse(rule.specifier, roots))


def fitted_grants(
    grants: Sequence[str], spec: ToolSpec, roots: tuple[str, ...]
) -> tuple[Fitted, ...]:
    """Applies grants to a tool; a ValueError if one of them is not a rule."""
    return tuple(filter(None, (fitted(_parse(text), spec, roots) for text in grants)))


@lru_cache(maxsize=256)
def _parse(text: str) -> Rule:
    return Rule.parse(text)


class CommandRules:
    """The rules about commands in a list."""

    def __init__(self, rules: Sequence[Fitted]) -> None:
        single: list[tuple[Fitted, CommandPattern]] = []
        self.several: list[tuple[Fitted, LinePattern]] = []  # about lines of several commands
        for rule in rules:
            match rule.form:
                case LineForm(LinePattern(commands=(command,))):
                    single.append((rule, command))
                case LineForm(line):
                    self.several.append((rule, line))
        self.single = Index(single, lambda each: each[1].name)

    def __bool__(self) -> bool:
        return bool(self.single.rules or self.several)

    def __add__(self, others: CommandRules) -> CommandRules:
        if not (self and others):
            return self or others
        mine, theirs = ([*each.single.rules, *each.several] for each in (self, others))
        return CommandRules([rule for rule, _ in (*mine, *theirs)])


NO_COMMAND_RULES = CommandRules(())


class FittedRules(Index[Fitted]):
    """A list of rules as applied to one tool; those about commands are apart from the others."""

    def __init__(self, rules: Sequence[Fitted]) -> None:
        others = [rule for rule in rules if not isinstance(rule.form, LineForm)]
        super().__init__(others, lambda rule: rule.form.key)
        self.commands = CommandRules(rules)
        self.texts = frozenset(rule.rule.text for rule in rules)
        self.has_paths = any(isinstance(rule.form, PathForm) for rule in rules)

    def __bool__(self) -> bool:
        return bool(self.texts)


NO_RULES = FittedRules(())


def ask_about_config(usual: Decision, names: Collection[Name]) -> Decision:
    """Asks about a write to configuration files; no profile or remembered approval answers this."""
    if usual.verdict is Verdict.DENY:
        return usual
    name = min(names)
    path = "/".join(name)
    reason = f"{OBEYED[name]} what stands in {path}, and nothing confines that."
    return Decision(Verdict.ASK, f"obeyed:{path}", "protection", reason)


def names_all(rule: Fitted, names: Collection[Name]) -> bool:
    """Returns whether the path of a rule spells out all of the names."""
    if not isinstance(rule.form, PathForm):
        return False
    written = [part and part.literal for part in rule.form.pattern.components]
    return all(
        any(tuple(written[at : at + len(name)]) == name for at in range(len(written)))
        for name in names
    )


@dataclass(frozen=True, slots=True)
class DeniedPlace:
    """A place that a rule denies to every tool and program."""

    rule: str
    pattern: PathPattern
    effects: tuple[Effect, ...]  # the denied effects: `READ`, `WRITE` or both


def find_denied(
    rules: Iterable[Rule], roots: tuple[str, ...], find: Callable[[str], ToolSpec | None]
) -> Iterator[DeniedPlace]:
    """Yields the places that rules deny to every tool and program."""
    for rule in rules:
        if effects := _closed_effects(rule, find):
            with contextlib.suppress(ValueError):  # then it applies to its own tool only
                pattern = PathPattern.parse(rule.specifier, roots)
                yield DeniedPlace(rule.text, pattern, effects)


def _closed_effects(rule: Rule, find: Callable[[str], ToolSpec | None]) -> tuple[Effect, ...]:
    """Returns the effects that a deny rule forbids at its place, if it is about one."""
    if rule.arguments is not None or not rule.specifier:
        return ()
    selector = rule.selector
    if selector.place_effect is not None:
        return (selector.place_effect,)
    if selector.name:
        spec = find(selector.name)
        if spec is None or spec.subject is None or spec.subject.kind is not SubjectKind.PATH:
            return ()
        return (Effect.WRITE if writes_files(spec) else Effect.READ,)
    named = tuple(each for each in (Effect.READ, Effect.WRITE) if each in selector.effects)
    return named or (Effect.READ, Effect.WRITE)


class PlaceRules(Protocol):
    """Rules about the files that one call opens."""

    def check(self, path: str, *, writing: bool) -> None:
        """Raises an error if the call may not use this real path, relative to the root."""

    def hides(self, path: str) -> bool:
        """Returns whether listings and searches omit a place and everything below it."""

    def permits(self, path: str) -> Collection[Name]:
        """Returns the protected names that may be written at exactly this place."""


@dataclass(frozen=True, slots=True)
class ClosedPlaces:
    """Places that rules deny to every tool."""

    denied: Index[DeniedPlace]
    tool: str  # the tool that opens places
    reads: bool  # whether its writes reveal the old content

    @classmethod
    def of(cls, denied: Sequence[DeniedPlace], spec: ToolSpec) -> ClosedPlaces:
        """Indexes the denied places by their first component, for one tool."""
        index = Index(denied, lambda each: each.pattern.first)
        return cls(index, spec.name, reads=Effect.READ in spec.effects)

    def check(self, path: str, *, writing: bool) -> None:
        """Raises an error if a rule denies the place."""
        rule = self.closing(path, reading=self.reads or not writing, writing=writing)
        if rule is not None:
            done = "written" if writing else "read"
            raise PermissionDeniedError(
                f"{self.tool} was not run on {path!r}: the rule {rule!r} (settings) lets it not be "
                f"{done}.",
                next_actions=["Work on other files, or ask the user to change the rule."],
            )

    def hides(self, path: str) -> bool:
        """Returns whether a rule denies reading the place."""
        return self.closing(path, reading=True, writing=False) is not None

    def permits(self, _path: str) -> Collection[Name]:
        """Returns nothing."""
        return ()

    def about(self, call: Call) -> str | None:
        """Returns the rule that denies the tool the place of a call, if any."""
        if call.path is None:
            return None
        reading, writing = reads_files(call.spec), writes_files(call.spec)
        return self.closing(call.path, reading=reading, writing=writing)

    def closing(self, path: str, *, reading: bool, writing: bool) -> str | None:
        """Returns the rule that denies a place, if any."""
        is_used = {Effect.READ: reading, Effect.WRITE: writing}
        near = self.denied.about(first_component(path))
        closing = (each for each in near if any(map(is_used.get, each.effects)))
        return next((each.rule for each in closing if each.pattern.covers(path)), None)


@dataclass(frozen=True, slots=True)
class JudgedPlaces:
    """The places of a call, checked again when they are opened: links may lead elsewhere."""

    closed: ClosedPlaces
    spelled: str | None  # the path that was judged; None if it leads out of the root
    was_asked: Callable[[], bool]  # returns whether the user had to approve it
    judge: Callable[[str], Decision]  # judges the same call with another path
    asking: Callable[[str], frozenset[str]]  # the ask rules about a path
    # Protected names in that path that were approved or allowed by name.
    config_files: Collection[Name] = ()
    # Whether the user approves this call itself, wherever it leads, and no grant replaces the
    # approval.
    is_confirmed: bool = False

    def check(self, path: str, *, writing: bool) -> None:
        """Raises an error if a rule denies the place, or asks about it but not the given path."""
        self.closed.check(path, writing=writing)
        if path == self.spelled:
            return
        decision = self.judge(path)
        if decision.verdict is Verdict.ALLOW or self._was_meant(path, decision):
            return
        asks = decision.verdict is Verdict.ASK
        raise PermissionDeniedError(
            f"{self.closed.tool} was not run on {path!r}, which {self.spelled!r} leads to: "
            f"the rule {decision.rule!r} ({decision.source}) "
            + ("asks about it first." if asks else "denies it."),
            next_actions=[f"Call it with the path {path!r} itself."] if asks else (),
        )

    def hides(self, path: str) -> bool:
        """Returns whether a rule denies reading the place."""
        return self.closed.hides(path)

    def permits(self, path: str) -> Collection[Name]:
        """Returns the protected names of the judged path, if no link led elsewhere."""
        return self.config_files if path == self.spelled else ()

    def _was_meant(self, path: str, decision: Decision) -> bool:
        """Returns whether the user's approval of the given path covers this place too."""
        if decision.verdict is not Verdict.ASK or self.spelled is None:
            return False
        if decision.source == TOOL and self.is_confirmed:
            return True
        is_beneath = self.spelled == "." or path.startswith(self.spelled + "/")
        return is_beneath and self.was_asked() and self.asking(path) <= self.asking(self.spelled)


@dataclass(frozen=True, slots=True)
class LineFiles:
    """Judges the files that a command line opens."""

    cwd: str  # the initial working directory, relative to the root
    roots: tuple[str, ...]  # the absolute root, in each of its spellings
    find: Callable[[str], ToolSpec | None]  # returns the tool with a name
    judge: Callable[[ToolSpec, Mapping[str, Any]], Decision]

    def decide(self, opened: Opened) -> Decision | str:
        """Returns the strictest decision on a redirection's files, or why there is none."""
        spelled = opened.paths(self.cwd) or ("..",)
        paths = [relative_path(path, self.roots) for path in spelled]
        found = [self._judge(path, opened) for path in paths]
        known = [decision for decision in found if decision is not None]
        denial = next((each for each in known if each.verdict is Verdict.DENY), None)
        if denial is not None:
            return denial
        if len(known) < len(found):
            return "which is not known to be inside the root"
        if opened.writes and any(path is not None and _is_protected(path) for path in paths):
            return "which other programs obey"
        return next((each for each in known if each.verdict is Verdict.ASK), known[0])

    def _judge(self, path: str | None, opened: Opened) -> Decision | None:
        """Judges the file tool that would read or write a path."""
        spec = self.find("write_file" if opened.writes else "read_file")
        if path is None or spec is None or spec.subject is None:
            return None
        return self.judge(spec, {spec.subject.parameter: path})

    def is_beneath(self, run: Run, path: str) -> bool:
        """Returns whether a path is inside the root, from every directory a command may run in."""
        if path.startswith("/"):
            return relative_path(path, self.roots) is not None
        return run.directories is not None and all(
            relative_path(posixpath.join(self.cwd, each, path), self.roots) is not None
            for each in run.directories
        )


def _is_protected(path: str) -> bool:
    try:
        Guard(()).judge_names(path.split("/"))
    except ProtectedPathError:
        return True
    return False
