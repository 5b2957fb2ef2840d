"""Grants: rules that are remembered of approvals."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from tools.core.spec import Confirmation, Effect, SubjectKind, ToolScope, ToolSpec
from tools.policy.calls import Call
from tools.policy.matching import Fitted, fitted
from tools.policy.paths import path_rule
from tools.policy.rules import Rule
from tools.policy.shell.shell_command import ShellCommand
from tools.policy.shell.words import line_rule
from tools.policy.urls import url_rule

__all__ = ["fitted_grants", "narrowest_rule"]


def fitted_grants(
    grants: Sequence[str], spec: ToolSpec, roots: tuple[str, ...]
) -> tuple[Fitted, ...]:
    """The grants as they are read for a tool.

    Raises:
        ValueError: If one of them is no rule.
    """
    return tuple(filter(None, (fitted(_rule(text), spec, roots) for text in grants)))


def narrowest_rule(call: Call) -> str:
    """A rule that means little more than a call; empty where there is none.

    Whether it would allow the call again is not looked at.
    """
    spec = call.spec
    match call.kind:
        case SubjectKind.COMMAND:
            plain = ShellCommand.parse(call.subject or "").plain
            specifier = line_rule(plain.commands, plain.operators) if plain else ""
        case SubjectKind.PATH if call.subject is not None:
            specifier = "" if call.path is None else path_rule(call.path)
        case SubjectKind.URL:
            specifier = url_rule(call.method, call.subject or "")
        case _:
            return spec.name if _may_be_granted_whole(spec) else ""
    return f"{spec.name}({specifier})" if specifier else ""


def _may_be_granted_whole(spec: ToolSpec) -> bool:
    runs_anything = Effect.EXECUTE in spec.effects and spec.scope is ToolScope.SYSTEM
    is_grave = spec.destructive or spec.confirmation is Confirmation.REQUIRED or spec.passes_on
    return not is_grave and not runs_anything


@lru_cache(maxsize=256)
def _rule(text: str) -> Rule:
    return Rule.parse(text)
