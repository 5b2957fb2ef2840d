"""A call: what is found of it on its way, each thing once, and what came of it."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from tools.core.audit.secret_arguments import Find, SecretArguments, SecretTools
from tools.core.context import RequestContext
from tools.core.errors import ToolFailedError
from tools.core.result import ToolResult
from tools.core.spec import Effect, ToolSpec
from tools.policy.verdict import Containment, Decision

if TYPE_CHECKING:
    from tools.core.client import Approval
    from tools.policy.places import PlaceRules

CANCELLED = "cancelled"
"""The outcome of a call that was given up before it was answered."""


@dataclass(slots=True)
class Permission:
    """What was found of one call; empty until it was judged.

    Attributes:
        decision: What the policy says.
        approval: By whom it was approved, where somebody had to be asked.
        places: What the policy says of the files that the call opens; None where nothing.
        reach: Whether no rule denies the call another URL, to which it is redirected.
        passed_on: Whether it made another call, which is judged and written down itself.
        holds: Whether the policy that judged it is still that which holds.
        renew: Has it judged again, in the context that it runs in.
        containment: How far what it runs is held back.
        unheld: Rules about paths that its programs are not kept to, and why.
        accepted: Those of them that a person let its programs run without.
    """

    decision: Decision | None = None
    approval: Approval | None = None
    places: PlaceRules | None = None
    reach: Callable[[str], bool] | None = None
    passed_on: bool = False
    holds: Callable[[], bool] = lambda: True
    renew: Callable[[RequestContext], Awaitable[None]] | None = None
    containment: Containment = Containment.NONE
    unheld: Mapping[str, str] = field(default_factory=dict)
    accepted: frozenset[str] = frozenset()


@dataclass(slots=True)
class Call:
    """A call on its way.

    Attributes:
        name: As it was called.
        arguments: As the caller gave them, whatever they are; once the tool is found, by the names
            that its schema has, and completed by the tool.
        context: Whose call it is.
        find: Finds a tool among those that its caller has.
        secret_tools: Finds secrets among arguments.
        found: The tool; None until it is found, or where there is none.
        checked: The arguments as validation made them.
        shown: What a question shows in the place of the arguments; empty for these.
        permission: What the policy and a person say of it.
        began: Unix seconds when it began.
        clock: The same on the clock that durations are measured by.
        id: Its number in the audit log.
    """

    name: str
    arguments: Any
    context: RequestContext
    find: Find = lambda _name: None
    secret_tools: SecretTools = field(default_factory=SecretTools)
    found: ToolSpec | None = None
    checked: dict[str, Any] = field(default_factory=dict)
    shown: str = ""
    permission: Permission = field(default_factory=Permission)
    began: float = field(default_factory=time.time)
    clock: float = field(default_factory=time.perf_counter)
    id: str = field(default_factory=lambda: os.urandom(8).hex())
    _secrets: SecretArguments | None = None

    @property
    def secrets(self) -> SecretArguments:
        """The secrets among the arguments."""
        if self._secrets is None:
            self._secrets = self.secret_tools.of(self.found, self.arguments, self.find)
        return self._secrets

    @property
    def spec(self) -> ToolSpec:
        """The tool, once it was found."""
        return cast("ToolSpec", self.found)


@dataclass(frozen=True, slots=True)
class FinishedCall:
    """A call, and what came of it, as it may be written down.

    Attributes:
        call: How it was made.
        name: As it was called, without secrets.
        arguments: What it was given, without secrets; nothing where that is no object.
        result: Its answer; None if it was cancelled.
        seconds: How long it took.
    """

    call: Call
    name: str
    arguments: Mapping[str, Any]
    result: ToolResult | None
    seconds: float

    @property
    def spec(self) -> ToolSpec | None:
        """The tool; None if there is none of that name."""
        return self.call.found

    @property
    def outcome(self) -> str:
        """As the audit log has it."""
        if self.result is None:
            return CANCELLED
        return str(self.result.structured["error_type"]) if self.result.is_error else "ok"

    @property
    def remembered_outcome(self) -> str:
        """The outcome for memory, where a program that failed is a failure too."""
        effects = frozenset() if self.spec is None else self.spec.effects
        runs = not effects.isdisjoint({Effect.EXECUTE, Effect.EXTERNAL})  # others only report it
        failed = runs and self.outcome == "ok" and self.result and self.result.tells_failure
        return ToolFailedError.error_type if failed else self.outcome
