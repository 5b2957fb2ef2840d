"""Loops: the calls of one program, about which a person is asked once instead of each time.

What they allow lives here, in the memory of the run: it is counted down, it ends with the program,
and nothing but the calls of this very run is judged with it.
"""

from __future__ import annotations

import secrets
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import anyio

from tools.core.client import Approval, Approvals, Approver, Consent, Question, RefusedError
from tools.core.errors import ApprovalRequiredError, PermissionDeniedError

MOST_RULES = 3
"""Of one tool that are told: the user sees from them what others would look like."""

MOST_OPEN = 20
"""Questions about one tool that wait on the command line: nobody answers more, one by one."""

PRESENCE_SECONDS = 1.0
"""A question that takes longer was shown to somebody."""


@dataclass(slots=True)
class _Grant:
    """What a person allowed to the rest of a program.

    Attributes:
        rule: Which calls.
        asking: What asked about the call that it was given for; it answers to nothing else.
        most: How many of them, with that call.
        by: Who allowed it: "client", "command line".
        used: How many of them were made.
    """

    rule: str
    asking: str
    most: int
    by: str
    used: int = 1

    def __str__(self) -> str:
        return f"{self.by} for this program, {self.used} of {self.most}"


@dataclass(slots=True)
class Needed:
    """Calls of a tool that needed an approval which nobody gave.

    Attributes:
        tool: The tool.
        reason: Why somebody had to be asked.
        rules: What would allow them, as it is written into the settings, the first of them; empty
            where each is approved on its own.
        more: Whether there are more.
    """

    tool: str
    reason: str
    rules: list[str] = field(default_factory=list)
    more: bool = False

    def add(self, rule: str) -> None:
        """Takes in what would allow another call."""
        if rule and rule not in self.rules:
            self.more = len(self.rules) >= MOST_RULES
            self.rules += [] if self.more else [rule]

    def __str__(self) -> str:
        rules = [*map(repr, self.rules), *["others"] * self.more]
        allowing = f"the user can allow {', '.join(rules)} in policy.allow"
        how = allowing if rules else "the user approves each call"
        return f"{self.tool}: {how}. {self.reason}"


@dataclass(slots=True)
class _Run:
    """What all loops of one run of a program share.

    Attributes:
        remaining: How many calls it may still make.
        denied: The rules of the calls of each tool that were denied; empty for all.
        refused: The digests of the calls that were.
        unanswered: Questions about each tool that nobody answered; enough for all if it was shown.
        turns: Held while somebody is asked about a tool.
        is_over: Whether it has ended.
    """

    remaining: Callable[[], int]
    denied: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    refused: set[str] = field(default_factory=set)
    unanswered: Counter[str] = field(default_factory=Counter)
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

    Attributes:
        name: What the person reads.
        id: Tells it from any other, also of another run of the same program.
        approved: The arguments of the last call of each tool that was approved.
    """

    def __init__(self, name: str, run: _Run, outer: Loop | None = None) -> None:
        self.name = name
        self.id = secrets.token_hex(8)
        self._run = run
        self._outer = outer
        self._grants: list[_Grant] = []
        self._inner: dict[object, tuple[object, Loop]] = {}
        self._needed: dict[str, Needed] = {}
        self.approved: dict[str, Mapping[str, Any]] = {}

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

    def granted(self, tool: str, asking: str, covers: Callable[[str], bool]) -> Approval | None:
        """Takes what is still allowed to a call of this loop; None where nothing is, or it is over.

        Args:
            tool: The tool.
            asking: What asks about the call.
            covers: Whether a rule covers it.
        """
        if any(not rule or covers(rule) for rule in self._run.denied[tool]):
            raise _refused(tool)
        if self._run.is_over:
            return None
        for grant in self._grants:
            if grant.used < grant.most and grant.asking == asking and covers(grant.rule):
                grant.used += 1
                return Approval(str(grant), ticket="")
        return None

    async def obtain(
        self,
        approvals: Approvals,
        question: Question,
        approver: Approver | None,
        *,
        asking: str,
        rule: str,
    ) -> Approval:
        """Has a call of this loop approved, unless one like it was denied, or nobody answered.

        Args:
            approvals: Has calls approved.
            question: What the person is asked, with what is offered to the program.
            approver: The way to the person at the client.
            asking: What asks about the call.
            rule: What would allow it in the settings; empty for nothing.

        Raises:
            AnswersAwaitedError: If the client must answer first.
        """
        tool, program = question.tool, question.program
        if question.digest in self._run.refused:
            raise _refused(tool)
        began = anyio.current_time()
        try:
            found = await self._answer(approvals, question, approver)
        except RefusedError as error:
            self._run.refused.add(question.digest)
            if error.consent is Consent.NO_MORE:
                self._run.denied[tool].add("")
            elif program is not None and program.same:
                self._run.denied[tool].add(program.same)
            raise
        except ApprovalRequiredError:
            is_shown = approver is not None or anyio.current_time() - began > PRESENCE_SECONDS
            self._run.unanswered[tool] += MOST_OPEN if is_shown else 1
            self.need(tool, question.reason, rule)
            raise
        if program is None or found.consent not in {Consent.FOR_PROGRAM, Consent.FOR_PROGRAM_WIDER}:
            return found
        allowed = program.same if found.consent is Consent.FOR_PROGRAM else program.whole
        grant = _Grant(allowed, asking, program.more + 1, found.by)
        self._grants.append(grant)
        return replace(found, by=str(grant))

    async def _answer(
        self, approvals: Approvals, question: Question, approver: Approver | None
    ) -> Approval:
        if self._run.unanswered[question.tool] < MOST_OPEN:
            return await approvals.obtain(question, approver)
        found = await approvals.given(question)
        if found is None:
            raise ApprovalRequiredError(
                f"{question.tool} was not run: the user has to approve it first, and has not"
                f" answered what this program asked before. {question.reason}",
                next_actions=["Tell the user what needed approval, and ask them how to go on."],
            )
        return found

    def need(self, tool: str, reason: str, rule: str) -> None:
        """Takes note of a call that nobody approved, here and in all that this is within."""
        self._needed.setdefault(tool, Needed(tool, reason)).add(rule)
        if self._outer is not None:
            self._outer.need(tool, reason, rule)

    @property
    def needed(self) -> tuple[Needed, ...]:
        """What needed an approval which nobody gave, a tool once, in the order of the calls."""
        return tuple(self._needed.values())


def _refused(tool: str) -> PermissionDeniedError:
    return PermissionDeniedError(
        f"{tool} was not run: the user said no to such calls of this program.",
        next_actions=["Ask the user what to do instead; do not try the same another way."],
    )
