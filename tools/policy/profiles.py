"""Profiles: what holds where no rule of the settings fits, as rules that can be read."""

from __future__ import annotations

from dataclasses import dataclass

from tools.policy.rules import Rule
from tools.policy.verdict import Verdict

__all__ = ["PROFILES", "ProfileRule"]


@dataclass(frozen=True, slots=True)
class ProfileRule:
    """A rule of a profile; the first that fits a call decides.

    Attributes:
        verdict: What it says of these calls.
        rule: Which calls.
        reason: Why, in a sentence.
        if_confined: Whether it holds only where what is run is confined.
    """

    verdict: Verdict
    rule: Rule
    reason: str
    if_confined: bool = False


def _rule(verdict: Verdict, text: str, reason: str, *, if_confined: bool = False) -> ProfileRule:
    return ProfileRule(verdict, Rule.parse(text), reason, if_confined)


_ALLOW, _ASK, _DENY = Verdict.ALLOW, Verdict.ASK, Verdict.DENY
_RUNS = "It runs programs."

PROFILES: dict[str, tuple[ProfileRule, ...]] = {
    "read-only": (
        _rule(_ALLOW, "scope:sandboxed+only:read", "It only reads files beneath the root."),
        _rule(_ALLOW, "scope:context+only:read", "It only reads stored context."),
        _rule(_ASK, "only:read,external", "It only reads, but not only what is stored here."),
        _rule(_DENY, "*", "The profile read-only allows no changes."),
    ),
    "standard": (
        _rule(_ALLOW, "scope:sandboxed", "It stays beneath the root."),
        _rule(_ALLOW, "scope:context", "It works on stored context."),
        _rule(_ALLOW, "source:function", "It is a function of the user's own."),
        _rule(_ASK, "scope:system+effect:execute", _RUNS),
        _rule(_ASK, "scope:system+effect:external", "It reaches beyond this machine."),
        _rule(_ALLOW, "scope:system", "It runs nothing new."),
        _rule(_ALLOW, "scope:mcp+only:read", "It only reads, on another server."),
        _rule(_ASK, "scope:mcp", "It runs on another server, and does not only read."),
    ),
    "trusting": (
        _rule(_ALLOW, "scope:system+effect:execute", "What it runs is confined.", if_confined=True),
        _rule(_ASK, "scope:system+effect:execute", "What it runs is not confined."),
        _rule(_ALLOW, "*", "The profile trusting allows it."),
    ),
}
"""The rules of each profile, in the order of their force."""
