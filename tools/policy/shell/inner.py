"""What a command runs besides itself."""

from __future__ import annotations

from dataclasses import dataclass

from tools.policy.shell.words import Word

__all__ = ["Inner"]


@dataclass(frozen=True, slots=True)
class Inner:
    """What a command runs.

    Attributes:
        at: The last word of the outer command that a rule has to name for it to be meant too; after
            the last, only a rule without wildcards means it.
        words: The words of a command.
        script: A line of a shell.
        unseen: What about it cannot be seen; the others are empty then.
        is_certain: Whether it is surely run; else it may be.
    """

    at: int
    words: tuple[Word, ...] = ()
    script: str | None = None
    unseen: str = ""
    is_certain: bool = True
