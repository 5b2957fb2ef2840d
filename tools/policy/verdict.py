"""What the policy says of a call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tools.policy.shell.words import Word

TOOL = "tool"
"""The source of what a tool says of itself."""


class Containment(IntEnum):
    """How far the programs that a call runs are held back."""

    NONE = 0
    CONFINED = 1
    OFFLINE = 2
    """Confined, and without a network."""


class Verdict(StrEnum):
    """Whether a call may run."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided of one call, and by what.

    Attributes:
        verdict: Whether it may run.
        rule: The rule that decided, as it is written, such as `bash(git status *)`.
        source: Where that rule stands: "settings", "profile standard", TOOL, "grant 3f9a21c4".
        reason: Why, in a sentence that names what the rule matched.
        parts: What was found of each part, where a call has several (commands of a shell).
        uncovered: The words of the commands that are asked about because no rule fits them.
    """

    verdict: Verdict
    rule: str
    source: str
    reason: str
    parts: tuple[str, ...] = ()
    uncovered: tuple[tuple[Word, ...], ...] = ()

    def asking(self, unheld: Mapping[str, str]) -> Decision:
        """Returns this of a call whose programs are not kept to rules, of which a person is asked.

        Args:
            unheld: Those rules, and why they are not enforced.
        """
        if not unheld or self.verdict is Verdict.DENY:
            return self
        said = (
            f"The rule {rule!r} is not enforced for programs, as {why}."
            for rule, why in unheld.items()
        )
        reason = " ".join((*said, *([self.reason] if self.verdict is Verdict.ASK else [])))
        return Decision(Verdict.ASK, next(iter(unheld)), "settings", reason, self.parts)
