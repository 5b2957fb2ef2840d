"""Decisions of the policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tools.policy.shell.words import Word

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
