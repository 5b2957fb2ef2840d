"""Tracks the calls of one program, so that a user is asked once instead of for each call.

Grants live in the memory of the run: they are counted down, end with the program, and apply only to
calls of that run.
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
"""Maximum rules listed for one tool: they show the user what others would look like."""

MOST_OPEN = 20
"""Maximum open questions about one tool on the command line; more are not answered singly."""

PRESENCE_SECONDS = 1.0
"""A question that took longer was shown to a user."""


@dataclass(slots=True)
class _Grant:
    """A user's grant for the rest of a program."""

    rule: str
    asking: str  # the rule that required approval; the grant covers no others
    most: int  # maximum number of calls, including the approved one
    by: str
    used: int = 1

    def __str__(self) -> str:
        return f"{self.by} for this program, {self.used} of {self.most}"


@dataclass(slots=True)
class Needed:
    """Calls of a tool that needed an approval and did not get it.

    Attributes:
        rules: The first of the rules that would allow them in the settings; empty if each call is
            approved on its own.
    """

    tool: str
    reason: str
    rules: list[str] = field(default_factory=list)
    more: bool = False

    def add(self, rule: str) -> None:
        """Adds the rule that would allow another call."""
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
    """The state that all loops of one run of a program share."""

    remaining: Callable[[], int]
    # The rules of each tool's denied calls; the empty rule denies all.
    denied: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    refused: set[str] = field(default_factory=set)
    # How many questions about each tool were not answered; a shown one counts as all.
    unanswered: Counter[str] = field(default_factory=Counter)
    # Locks held while a question about a tool is open.
    turns: defaultdict[str, anyio.Lock] = field(default_factory=lambda: defaultdict(anyio.Lock))
    is_over: bool = False


class Loop:
    """The calls of one run of a program, and the user's answers about them.

    If the program calls a tool that makes calls itself, these form an inner loop. Grants are not
    shared between the two; denials are.

        outer: The enclosing loop; None for the outermost.
    """

    def __init__(self, name: str, run: _Run, outer: Loop | None = None) -> None:
        self.name = name
        self.id = secrets.token_hex(8)  # its unique id, different for each run of the same program
        self._run = run
        self._outer = outer
        self._grants: list[_Grant] = []
        self._inner: dict[object, tuple[object, Loop]] = {}
        self._needed: dict[str, Needed] = {}
        # The arguments of the last approved call of each tool.
        self.approved: dict[str, Mapping[str, Any]] = {}

    @classmethod
    @contextmanager
    def of(cls, name: str, remaining: Callable[[], int]) -> Iterator[Loop]:
        """Yields the outermost loop of a program; its grants end with the block.

        `remaining` returns how many calls it may still make, not counting those that began.
        """
        run = _Run(remaining)
        try:
            yield cls(name, run)
        finally:
            run.is_over = True

    def within(self, what: object, name: str = "") -> Loop:
        """Returns the inner loop for the calls that a call of this one makes.

        `what` is the current tool, or the digest of a program; the name is for the user.
        """
        key = what if isinstance(what, str) else id(what)
        if key not in self._inner:  # keeping `what` alive keeps its id unique
            shown = " > ".join(filter(None, (self.name, name)))
            self._inner[key] = what, Loop(shown, self._run, self)
        return self._inner[key][1]

    @property
    def remaining(self) -> int:
        """How many calls the program may still make."""
        return max(self._run.remaining(), 0)

    def turn(self, tool: str) -> anyio.Lock:
        """Returns the lock held during a question about a tool, so that similar calls wait."""
        return self._run.turns[tool]

    def granted(self, tool: str, asking: str, covers: Callable[[str], bool]) -> Approval | None:
        """Uses up one call of a grant; returns None if no grant covers it or the run is over."""
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
        asking: str,  # the rule that requires approval
        rule: str,  # the rule that would allow the call in the settings, or ""
    ) -> Approval:
        """Gets approval for a call, unless one like it was denied or too many are unanswered."""
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
                f" answered this program's earlier questions. {question.reason}",
                next_actions=["Tell the user what needed approval, and ask how to continue."],
            )
        return found

    def need(self, tool: str, reason: str, rule: str) -> None:
        """Records a call without approval in this loop and all outer ones."""
        self._needed.setdefault(tool, Needed(tool, reason)).add(rule)
        if self._outer is not None:
            self._outer.need(tool, reason, rule)

    @property
    def needed(self) -> tuple[Needed, ...]:
        """The calls that lacked approval, once per tool, in the order of the calls."""
        return tuple(self._needed.values())


def _refused(tool: str) -> PermissionDeniedError:
    return PermissionDeniedError(
        f"{tool} was not run: the user denied such calls of this program.",
        next_actions=["Ask the user what to do instead; do not try the same another way."],
    )
