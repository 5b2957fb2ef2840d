"""Loops: the calls of one program, about which a person is asked once instead of each time.

What they allow lives here, in the memory of the run: it is counted down, it ends with the program,
and nothing but the calls of this very run is judged with it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import anyio

__all__ = ["Loop", "LoopGrant", "Needed"]


@dataclass(slots=True)
class LoopGrant:
    """What a person allowed to the rest of a program.

    Attributes:
        rule: Which calls.
        most: How many of them, with the one that was asked about.
        by: Who allowed it: "client", "command line".
        is_whole: Whether the tool is meant, whatever it is given.
        used: How many of them were made.
    """

    rule: str
    most: int
    by: str
    is_whole: bool
    used: int = 1

    def use(self) -> str:
        """Counts one more call; says who approved it, and which one it is."""
        self.used += 1
        return str(self)

    def __str__(self) -> str:
        return f"{self.by} for this program, {self.used} of {self.most}"


@dataclass(frozen=True, slots=True)
class Needed:
    """Calls that needed an approval which nobody gave.

    Attributes:
        tool: The tool.
        rule: What would allow them, as it is written into the settings; empty where no rule is
            offered, so that each is approved on its own.
        reason: Why somebody had to be asked.
    """

    tool: str
    rule: str
    reason: str

    def __str__(self) -> str:
        how = f"allowed by the rule {self.rule!r}" if self.rule else "approved one by one only"
        return f"{self.tool}: {how}. {self.reason}"


@dataclass(slots=True)
class _Run:
    """What all loops of one run of a program share.

    Attributes:
        remaining: How many calls it may still make.
        denied: Tools that were denied, each with which calls of it; empty for all.
        unanswered: Tools that were asked about, and nobody answered.
        turns: Held while somebody is asked about a tool.
        is_over: Whether it has ended.
    """

    remaining: Callable[[], int]
    denied: set[tuple[str, str]] = field(default_factory=set)
    unanswered: set[str] = field(default_factory=set)
    turns: defaultdict[str, anyio.Lock] = field(default_factory=lambda: defaultdict(anyio.Lock))
    is_over: bool = False


class Loop:
    """The calls that one run of a program makes, and what a person said about them.

    What a tool calls that the program calls is a loop within it: no grant of the one counts in the
    other, and what was denied is denied to both.

    Args:
        name: What the person reads: `run_code`, a created tool, `call_tools`.
        run: What it shares with those that it is within.
        outer: The one that it is within; None for the outermost.
    """

    def __init__(self, name: str, run: _Run, outer: Loop | None = None) -> None:
        self.name = name
        self._run = run
        self._outer = outer
        self._grants: list[LoopGrant] = []
        self._inner: dict[object, tuple[object, Loop]] = {}
        self._needed: dict[tuple[str, str], Needed] = {}

    @classmethod
    @contextmanager
    def of(cls, name: str, remaining: Callable[[], int]) -> Iterator[Loop]:
        """The outermost loop of a program; what is allowed to it ends with the block.

        Args:
            name: What the person reads.
            remaining: How many calls it may still make, besides those that began.
        """
        run = _Run(remaining)
        try:
            yield cls(name, run)
        finally:
            run.is_over = True

    def within(self, what: object, name: str = "") -> Loop:
        """The loop of what a call of this one calls itself.

        Args:
            what: Tells it from any other: the tool as it is now, or the digest of a program.
            name: What the person reads of it; empty where that is said already.
        """
        key = what if isinstance(what, str) else id(what)
        if key not in self._inner:  # `what` is kept, so that its id is nobody else's
            shown = " > ".join(filter(None, (self.name, name)))
            self._inner[key] = what, Loop(shown, self._run, self)
        return self._inner[key][1]

    @property
    def remaining(self) -> int:
        """How many calls the program may still make."""
        return max(self._run.remaining(), 0)

    def turn(self, tool: str) -> anyio.Lock:
        """Is held while somebody is asked about a tool: calls like it wait for the answer."""
        return self._run.turns[tool]

    @property
    def grants(self) -> tuple[LoopGrant, ...]:
        """What is still allowed to the calls of this loop; none once the program is over."""
        if self._run.is_over:
            return ()
        return tuple(each for each in self._grants if each.used < each.most)

    def allow(self, grant: LoopGrant) -> None:
        """Allows calls of a kind to the rest of the program."""
        self._grants.append(grant)

    def deny(self, tool: str, bounds: str = "") -> None:
        """Denies a tool to the rest of the program, and to all within it.

        Args:
            tool: Which.
            bounds: Which calls of it alone; empty for all.
        """
        self._run.denied.add((tool, bounds))

    def is_denied(self, tool: str, bounds: str) -> bool:
        """Whether calls like this one were denied."""
        return not self._run.denied.isdisjoint({(tool, ""), (tool, bounds)})

    def is_unanswered(self, tool: str) -> bool:
        """Whether nobody answered when it was asked about the tool."""
        return tool in self._run.unanswered

    def need(self, needed: Needed) -> None:
        """Takes note of a call that nobody approved; its tool is not asked about again."""
        self._run.unanswered.add(needed.tool)
        loop: Loop | None = self
        while loop is not None:
            loop._needed.setdefault((needed.tool, needed.rule), needed)  # noqa: SLF001  # it is of this very class
            loop = loop._outer  # noqa: SLF001  # the same

    @property
    def needed(self) -> tuple[Needed, ...]:
        """What needed an approval which nobody gave, once each, in the order of the calls."""
        return tuple(self._needed.values())
