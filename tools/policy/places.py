"""Rules about places: judged of what a path turned out to be when it was opened."""

from __future__ import annotations

import contextlib
import posixpath
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tools.core.errors import PermissionDeniedError
from tools.core.spec import Effect, SubjectKind, ToolSpec
from tools.policy.calls import Call, reads_files, writes_files
from tools.policy.matching import Index
from tools.policy.paths import PathPattern, first_component, relative_path
from tools.policy.rules import Rule
from tools.policy.shell.plain_line import Opened, Run
from tools.policy.verdict import TOOL, Decision, Verdict
from tools.sandbox.files.protect import Guard, ProtectedPathError
from tools.sandbox.files.protected_names import Name


@dataclass(frozen=True, slots=True)
class DeniedPlace:
    """What a rule denies to every tool, and to programs.

    Attributes:
        rule: The rule, as it is written.
        pattern: The paths.
        effects: What is denied there: `READ`, `WRITE` or both.
    """

    rule: str
    pattern: PathPattern
    effects: tuple[Effect, ...]


def find_denied(
    rules: Iterable[Rule], roots: tuple[str, ...], find: Callable[[str], ToolSpec | None]
) -> Iterator[DeniedPlace]:
    """Yields the places that rules deny whichever tool or program would open them.

    Args:
        rules: The rules that deny.
        roots: The root, absolute, in each of its spellings.
        find: Gives the tool of a name.
    """
    for rule in rules:
        effects = _closed_effects(rule, find)
        if effects:
            with contextlib.suppress(ValueError):  # then it counts for its own tool alone
                pattern = PathPattern.parse(rule.specifier, roots)
                yield DeniedPlace(rule.text, pattern, effects)


def _closed_effects(rule: Rule, find: Callable[[str], ToolSpec | None]) -> tuple[Effect, ...]:
    """To which effects a rule that denies closes a place; none where it is about no place."""
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


def closed_index(rules: Sequence[tuple[str, PathPattern]]) -> Index[tuple[str, PathPattern]]:
    """Rules that close places, found by the first component of these."""
    return Index(rules, lambda rule: rule[1].first)


class PlaceRules(Protocol):
    """What the rules say of the files that one call opens."""

    def check(self, path: str, *, writing: bool) -> None:
        """Raises if the call may not use a place.

        Args:
            path: Where it really is, relative to the root, without links.
            writing: Whether it is to be written.
        """

    def hides(self, path: str) -> bool:
        """Whether a listing or a search leaves a place out, with all that is beneath it."""

    def permits(self, path: str) -> Collection[Name]:
        """The names closed to writes that are open to a write to this very place."""


@dataclass(frozen=True, slots=True)
class ClosedPlaces:
    """Places that rules deny, whichever tool would open them.

    Attributes:
        to_reads: Rules by their text, and which places each closes to reads.
        to_writes: The same for writes.
        tool: The tool that opens places.
        reads: Whether what it writes tells it what was there.
    """

    to_reads: Index[tuple[str, PathPattern]]
    to_writes: Index[tuple[str, PathPattern]]
    tool: str = ""
    reads: bool = True

    def check(self, path: str, *, writing: bool) -> None:
        """Raises if a rule denies the place."""
        rule = self.closing(path, reading=self.reads or not writing, writing=writing)
        if rule is not None:
            done = "written" if writing else "read"
            raise PermissionDeniedError(
                f"{self.tool} was not run on {path!r}: the rule {rule!r} (settings) lets it not be "
                f"{done}.",
                next_actions=["Work on other files, or ask the user to change the rule."],
            )

    def hides(self, path: str) -> bool:
        """Whether a rule closes the place to reads."""
        return self.closing(path, reading=True, writing=False) is not None

    def permits(self, _path: str) -> Collection[Name]:
        """None."""
        return ()

    def about(self, call: Call) -> str | None:
        """The rule that closes the place that a call is about to its tool; None where none does."""
        if call.path is None:
            return None
        reading, writing = reads_files(call.spec), writes_files(call.spec)
        return self.closing(call.path, reading=reading, writing=writing)

    def closing(self, path: str, *, reading: bool, writing: bool) -> str | None:
        """The rule that closes a place; None where none does."""
        keys = first_component(path)
        indexes = (*((self.to_reads,) if reading else ()), *((self.to_writes,) if writing else ()))
        near = (each for index in indexes for each in index.about(keys))
        return next((rule for rule, pattern in near if pattern.covers(path)), None)


@dataclass(frozen=True, slots=True)
class JudgedPlaces:
    """Places of a call about a path, which rules may judge otherwise once it is open.

    Attributes:
        closed: What is denied to every tool.
        spelled: The path that was judged; None where it leads out of the root.
        was_asked: Tells whether a person had to be asked about it.
        judge: Judges the same call about another path.
        asking: The rules that ask about a path.
        obeyed: What of that path is closed to writes, and was approved or is allowed by its name.
        is_confirmed: Whether a person is asked about this very call, wherever it leads: no grant
            stands for the answer.
    """

    closed: ClosedPlaces
    spelled: str | None
    was_asked: Callable[[], bool]
    judge: Callable[[str], Decision]
    asking: Callable[[str], frozenset[str]]
    obeyed: Collection[Name] = ()
    is_confirmed: bool = False

    def check(self, path: str, *, writing: bool) -> None:
        """Raises if a rule denies the place, or asks about it and not about the path given."""
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
        """Whether a rule closes the place to reads."""
        return self.closed.hides(path)

    def permits(self, path: str) -> Collection[Name]:
        """Those of the path that was judged, where this is no other: no link leads there."""
        return self.obeyed if path == self.spelled else ()

    def _was_meant(self, path: str, decision: Decision) -> bool:
        """Whether the person who was asked about the path given was asked about this place too."""
        if decision.verdict is not Verdict.ASK or self.spelled is None:
            return False
        if decision.source == TOOL and self.is_confirmed:
            return True
        is_beneath = self.spelled == "." or path.startswith(self.spelled + "/")
        return is_beneath and self.was_asked() and self.asking(path) <= self.asking(self.spelled)


@dataclass(frozen=True, slots=True)
class LineFiles:
    """What the rules say of the files that a line opens.

    Attributes:
        cwd: Where the line begins, relative to the root.
        roots: The root, absolute, in each of its spellings.
        find: Gives the tool of a name.
        judge: What the rules say of a call.
    """

    cwd: str
    roots: tuple[str, ...]
    find: Callable[[str], ToolSpec | None]
    judge: Callable[[ToolSpec, Mapping[str, Any]], Decision]

    def decide(self, opened: Opened) -> Decision | str:
        """The strictest decision about all that a redirection may open; else why there is none."""
        spelled = opened.paths(self.cwd) or ("..",)
        paths = [relative_path(path, self.roots) for path in spelled]
        found = [self._judged(path, opened) for path in paths]
        known = [decision for decision in found if decision is not None]
        denial = next((each for each in known if each.verdict is Verdict.DENY), None)
        if denial is not None:
            return denial
        if len(known) < len(found):
            return "which is not known to be beneath the root"
        if opened.writes and any(path is not None and _is_closed(path) for path in paths):
            return "which other programs obey"
        return next((each for each in known if each.verdict is Verdict.ASK), known[0])

    def _judged(self, path: str | None, opened: Opened) -> Decision | None:
        """What the rules say of the tool that reads a file, or writes it."""
        spec = self.find("write_file" if opened.writes else "read_file")
        if path is None or spec is None or spec.subject is None:
            return None
        return self.judge(spec, {spec.subject.parameter: path})

    def is_beneath(self, run: Run, path: str) -> bool:
        """Whether a path is beneath the root, from wherever a command may run."""
        if path.startswith("/"):
            return relative_path(path, self.roots) is not None
        return run.directories is not None and all(
            relative_path(posixpath.join(self.cwd, each, path), self.roots) is not None
            for each in run.directories
        )


def _is_closed(path: str) -> bool:
    """Whether programs obey what stands there, so that it is closed to writes."""
    try:
        Guard(()).judge_names(path.split("/"))
    except ProtectedPathError:
        return True
    return False
