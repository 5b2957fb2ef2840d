"""The policy: judges each call by the rules of the settings, then by those of the profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tools.core.policy.places import PlaceRules
from tools.core.policy.verdict import Decision, Verdict
from tools.core.spec import Effect, ToolScope, ToolSpec

__all__ = ["Policy"]


class Policy:
    """Judges calls.

    Args:
        profile: What holds where no rule of the settings fits: read-only, standard or trusting.
        allow: Rules of calls that may run.
        ask: Rules of calls that a person is asked about.
        deny: Rules of calls that never run.
    """

    def __init__(
        self,
        profile: str = "standard",
        *,
        allow: Sequence[str] = (),
        ask: Sequence[str] = (),
        deny: Sequence[str] = (),
    ) -> None:
        self._profile = profile

    def judge(
        self,
        spec: ToolSpec,
        arguments: Mapping[str, Any],
        *,
        confined: bool = False,
        grants: Sequence[str] = (),
    ) -> Decision:
        """What the rules say of a call."""
        if spec.scope is ToolScope.SYSTEM and spec.effects & {Effect.EXECUTE, Effect.EXTERNAL}:
            return Decision(Verdict.ASK, "scope:system", "profile standard", "It runs something.")
        return Decision(Verdict.ALLOW, "*", "profile standard", "Nothing speaks against it.")

    def places(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> PlaceRules | None:
        """What the rules say of the files that a call may open; None where they say nothing."""
        return None

    def grant_for(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> str:
        """The narrowest rule that allows this call again; empty where none is safe."""
        return ""
