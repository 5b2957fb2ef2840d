"""Profiles: the default decisions if no rule in the settings matches, written as rules."""

from __future__ import annotations

from dataclasses import dataclass

from tools.policy.calls import Call
from tools.policy.rules import Rule
from tools.policy.verdict import TOOL, Containment, Decision, Verdict


@dataclass(frozen=True, slots=True)
class ProfileRule:
    """A rule of a profile; the first match decides."""

    verdict: Verdict
    rule: Rule
    reason: str
    needs: Containment = Containment.NONE  # minimum containment for the rule to apply


def _rule(
    verdict: Verdict, text: str, reason: str, needs: Containment = Containment.NONE
) -> ProfileRule:
    return ProfileRule(verdict, Rule.parse(text), reason, needs)


_ALLOW, _ASK, _DENY = Verdict.ALLOW, Verdict.ASK, Verdict.DENY
_PROGRAMS = "scope:system+effect:execute"
_AGENTS = _rule(
    _ASK, f"{_PROGRAMS}+effect:external", "It gives work to another program, or to a service."
)
_UNCONFINED = _rule(_ASK, _PROGRAMS, "What it runs is not confined.")
_CREATED = "source:created"
_CREATED_CONFINED = _rule(
    _ALLOW, _CREATED, "Its source was approved, and it runs confined.", Containment.CONFINED
)
_CREATED_FREE = _rule(_ASK, _CREATED, "An agent wrote what it runs, and that is not confined.")
_CHANGES_NOTHING = "It runs confined and changes nothing; each call that it makes is judged itself."
_OWN = (
    _rule(_ALLOW, "scope:sandboxed", "It stays beneath the root."),
    _rule(_ALLOW, "scope:context", "It works on stored context."),
    _rule(_ALLOW, "source:function", "It is a function of the user's own."),
)
_BEYOND = (
    _rule(_ASK, "scope:system+effect:external", "It reaches beyond this machine."),
    _rule(_ALLOW, "scope:system", "It runs nothing new."),
    _rule(_ALLOW, "scope:mcp+only:read", "It only reads, on another server."),
    _rule(_ASK, "scope:mcp", "It runs on another server, and does not only read."),
)

PROFILES: dict[str, tuple[ProfileRule, ...]] = {
    "read-only": (
        _rule(_ALLOW, "run_code", _CHANGES_NOTHING, Containment.OFFLINE),
        _rule(_ALLOW, _CREATED, _CHANGES_NOTHING, Containment.OFFLINE),
        _rule(_ALLOW, "scope:sandboxed+only:read", "It only reads files beneath the root."),
        _rule(_ALLOW, "scope:context+only:read", "It only reads stored context."),
        _rule(_ASK, "only:read,external", "It only reads, but not only what is stored here."),
        _rule(_DENY, "*", "The profile read-only allows no changes."),
    ),
    "cautious": (
        _rule(_ASK, _CREATED, "It runs what an agent wrote."),
        *_OWN,
        _rule(_ASK, _PROGRAMS, "It runs programs."),
        *_BEYOND,
    ),
    "standard": (
        _CREATED_CONFINED,
        _CREATED_FREE,
        *_OWN,
        _AGENTS,
        _rule(
            _ALLOW,
            _PROGRAMS,
            "What it runs is confined and has no network.",
            Containment.OFFLINE,
        ),
        _rule(_ASK, _PROGRAMS, "What it runs reaches hosts on the network.", Containment.CONFINED),
        _UNCONFINED,
        *_BEYOND,
    ),
    "trusting": (
        _CREATED_CONFINED,
        _CREATED_FREE,
        _rule(_ALLOW, _PROGRAMS, "What it runs is confined.", Containment.CONFINED),
        _UNCONFINED,
        _rule(_ALLOW, "*", "The profile trusting allows it."),
    ),
}
"""The rules of each profile, in order of precedence."""

ASKING_TO_DELETE = frozenset({"cautious", "standard"})
"""The profiles that ask before a line that deletes much, whatever else is allowed."""


def using_secret(call: Call) -> Decision:
    """Returns every profile's decision on a call that uses a secret."""
    rule = f"{call.spec.name}({call.secret_parameter}={call.secret})"
    reason = f"It uses the secret {call.secret!r}, and no rule such as {rule!r} allows that."
    return Decision(Verdict.ASK, f"secret:{call.secret}", TOOL, reason)
