"""Rules fitted to one tool: what a rule says of a call that is not one of a shell."""

from __future__ import annotations

from dataclasses import dataclass

from tools.core.spec import Effect, SubjectKind, ToolSpec
from tools.policy.calls import Call, reads_files, writes_files
from tools.policy.paths import PathPattern
from tools.policy.rules import Rule, compiled
from tools.policy.shell.likeness import Likeness
from tools.policy.shell.words import LinePattern
from tools.policy.urls import UrlPattern

__all__ = ["Fitted", "fitted"]


@dataclass(frozen=True, slots=True)
class Fitted:
    """A rule as it is read for one tool.

    Attributes:
        rule: The rule.
        pattern: What its specifier stands for; None where it has none, or compares arguments.
        problem: Why it can match no call of this tool, though it names it.
    """

    rule: Rule
    pattern: LinePattern | PathPattern | UrlPattern | None = None
    problem: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether it says nothing of what a call is about."""
        return self.pattern is None

    @property
    def key(self) -> str | None:
        """One of the keys of every call that it means (`Call.keys`); None where it may have any."""
        match self.pattern:
            case PathPattern() as pattern:
                return pattern.first
            case UrlPattern() as pattern:
                return None if pattern.host.startswith("*") else pattern.host
            case _:
                return None

    def forbids(self, call: Call) -> Likeness:
        """How surely a call is one that this rule denies, or asks about."""
        if self.problem:  # nobody writes such a rule to have it ignored
            return Likeness.YES
        match self.pattern:
            case PathPattern() as pattern:
                path = call.path
                return Likeness(2 * (path is not None and pattern.covers(path)))
            case UrlPattern() as pattern:
                if call.address is None:
                    return Likeness.MAYBE
                return Likeness(2 * pattern.matches(call.method, call.address, beneath=True))
            case _:
                return Likeness(2 * self._fits_arguments(call))

    def permits(self, call: Call) -> bool:
        """Whether a call is one that this rule allows."""
        if self.problem:
            return False
        match self.pattern:
            case PathPattern() as pattern:
                path = call.path
                return path is not None and pattern.matches(path)
            case UrlPattern() as pattern:
                address = call.address
                return address is not None and pattern.matches(call.method, address, beneath=False)
            case _:
                return self._fits_arguments(call)

    def _fits_arguments(self, call: Call) -> bool:
        conditions = self.rule.arguments
        return conditions is None or conditions.match(call.spec.input_schema, call.arguments)


def fitted(rule: Rule, spec: ToolSpec, roots: tuple[str, ...], bare: str = "") -> Fitted | None:
    """A rule as it is read for a tool; None where it is about other tools.

    Args:
        rule: The rule.
        spec: The tool.
        roots: The root, absolute, in each of its spellings.
        bare: A name beside its own that counts here; empty for none.
    """
    if rule.selector.place_effect is not None:
        if not _is_about_place(rule.selector.place_effect, spec):
            return None
        return Fitted(rule, PathPattern.parse(rule.specifier, roots))
    if not rule.selector.fits(spec, bare):
        return None
    problem = rule.problem(spec)
    if problem:
        return Fitted(rule, problem=problem) if rule.selector.name else None
    if not rule.specifier or rule.arguments is not None or spec.subject is None:
        return Fitted(rule)
    return Fitted(rule, compiled(rule.specifier, spec.subject, roots))


def _is_about_place(effect: Effect, spec: ToolSpec) -> bool:
    if spec.subject is None or spec.subject.kind is not SubjectKind.PATH:
        return False
    return reads_files(spec) if effect is Effect.READ else writes_files(spec)
