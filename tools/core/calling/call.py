"""Carries the data of one call through the call path, and its outcome."""

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
"""The outcome of a call that was cancelled before it was answered."""


@dataclass(slots=True)
class Permission:
    """The decisions about one call; empty until the policy judged it.

    Attributes:
        decision: The policy's decision.
        approval: Who approved it, if approval was needed.
        places: The policy's rules for the files it opens, or None.
        reach: Returns whether the policy allows a URL to which the call is redirected.
        passed_on: Whether it made another call, which is judged and logged itself.
        holds: Returns whether the policy that judged it is still in force.
        renew: Judges it again, in the context in which it runs.
        containment: How strictly the programs it runs are confined.
        unheld: Path rules that cannot be enforced on its programs, with the reason.
        accepted: Those of them that a user agreed to run without.
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
    """A call in progress.

    Attributes:
        name: The name used by the caller.
        arguments: The caller's arguments, unchecked; once the tool is found, under its schema's
            names and completed by the tool.
        context: The caller's context.
        find: Finds a tool among the caller's tools.
        secret_tools: Finds secret arguments.
        found: The tool; None until it is found, or if it does not exist.
        checked: The validated arguments.
        shown: Text that approval questions show instead of the arguments, if not empty.
        permission: The decisions of the policy and the user.
        began: Unix seconds when it began.
        clock: The same moment on the clock that measures durations.
        id: Its id in the audit log.
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
        """The tool, after it was found."""
        return cast("ToolSpec", self.found)


@dataclass(frozen=True, slots=True)
class FinishedCall:
    """A call and its outcome, in the form that may be logged.

    Attributes:
        call: The call.
        name: The name used by the caller, without secrets.
        arguments: Its arguments, without secrets; empty if they were not an object.
        result: Its result; None if it was cancelled.
        seconds: How long it took.
    """

    call: Call
    name: str
    arguments: Mapping[str, Any]
    result: ToolResult | None
    seconds: float

    @property
    def spec(self) -> ToolSpec | None:
        """The tool; None if it does not exist."""
        return self.call.found

    @property
    def outcome(self) -> str:
        """The outcome for the audit log."""
        if self.result is None:
            return CANCELLED
        return str(self.result.structured["error_type"]) if self.result.is_error else "ok"

    @property
    def remembered_outcome(self) -> str:
        """The outcome for memory, in which a failed program counts as a failure."""
        effects = frozenset() if self.spec is None else self.spec.effects
        runs = not effects.isdisjoint({Effect.EXECUTE, Effect.EXTERNAL})  # others only report it
        failed = runs and self.outcome == "ok" and self.result and self.result.tells_failure
        return ToolFailedError.error_type if failed else self.outcome
