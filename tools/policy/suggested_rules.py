"""Suggests rules that would allow a call, to spare the user further questions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from posixpath import commonpath, dirname
from typing import Any

from tools.core.spec import Confirmation, SubjectKind, ToolSpec
from tools.policy.calls import Call, Containment, Decision, Verdict
from tools.policy.forms import may_be_granted_whole, narrowest_rule, runs_anything
from tools.policy.paths import path_rule
from tools.policy.policy import Policy
from tools.policy.rules import Rule
from tools.policy.shell.interpreters import INTERPRETERS
from tools.policy.shell.shell_command import ShellCommand
from tools.policy.shell.words import Word, base_name, line_rule
from tools.policy.shell.wrappers import inner_commands

MOST_RULES = 4  # limit on the rules in one offer: more would not be read before they are accepted
LONGEST = 120  # limit on the characters of such a rule: longer lines are not run every day

FAMILIES: Mapping[str, frozenset[str]] = {
    "git": frozenset({"add", "commit", "diff", "fetch", "log", "show", "status"}),
    "cargo": frozenset({"bench", "build", "check", "clippy", "doc", "fmt", "test"}),
    "go": frozenset({"build", "fmt", "test", "vet"}),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), frozenset({"test"})),
}
"""Programs whose subcommands each do one thing, whatever the other arguments."""

RUNS_SCRIPTS = frozenset({"npm", "pnpm", "yarn", "bun"})
MODULES = frozenset({"mypy", "pytest", "ruff", "unittest"})
WHOLE = frozenset({"cat", "grep", "head", "ls", "mypy", "pytest", "ruff", "tail", "wc"})
"""Programs that do one thing, whatever their arguments."""


def grant_for(policy: Policy, spec: ToolSpec, arguments: Mapping[str, Any]) -> str:
    """Returns the narrowest rule that allows this call again; empty if none is safe."""
    text = narrowest_rule(Call(spec, arguments, policy.roots))
    if not _is_rule(text):
        return ""
    return text if permits(policy, spec, arguments, text) else ""


def grant_in_loop(
    policy: Policy,
    spec: ToolSpec,
    arguments: Mapping[str, Any],  # its validated arguments
    before: Mapping[str, Any] | None,  # the arguments of the last approved call, if any
) -> str:
    """Returns a rule that allows the calls of a loop; empty if none is safe.

    Until two calls differ, this is the rule of a temporary grant. Then it is what they have in
    common: the directory or the arguments.
    """
    narrow = grant_for(policy, spec, arguments)
    asks_itself = spec.confirmation is not Confirmation.NONE
    if before is None or asks_itself or spec.is_proxy or runs_anything(spec):
        return narrow
    if spec.subject is None:
        common = "" if narrow else _common_arguments(arguments, before)
    else:
        common = _common_directory(
            *(Call(spec, each, policy.roots) for each in (arguments, before))
        )
    text = f"{spec.name}({common})"
    is_told = bool(common) and len(text) <= LONGEST and _is_rule(text)
    return text if is_told and permits(policy, spec, arguments, text) else narrow


def _common_arguments(arguments: Mapping[str, Any], before: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name}={json.dumps(value, ensure_ascii=False)}"
        for name, value in arguments.items()
        if isinstance(value, str | int) and before.get(name) == value
    )


def _common_directory(call: Call, before: Call) -> str:
    """Returns a rule for the common directory of two paths; empty for equal paths or the root."""
    if call.path is None or before.path is None or call.path == before.path:
        return ""
    directory = commonpath([dirname(call.path), dirname(before.path)])
    rule = path_rule(directory) if directory else ""
    return f"{rule}/**" if rule else ""


def whole_grant_for(
    policy: Policy, spec: ToolSpec, arguments: Mapping[str, Any], decision: Decision
) -> str:
    """Returns a rule for every call of a tool; empty unless only the profile asks."""
    if decision.source != policy.source or not may_be_granted_whole(spec):
        return ""
    return spec.name if permits(policy, spec, arguments, spec.name) else ""


def permits(policy: Policy, spec: ToolSpec, arguments: Mapping[str, Any], rule: str) -> bool:
    """Returns whether a call would run if the user had allowed a rule."""
    return policy.judge(spec, arguments, grants=[rule]).verdict is Verdict.ALLOW


def offers_for(
    policy: Policy,
    spec: ToolSpec,
    arguments: Mapping[str, Any],  # its validated arguments
    decision: Decision,
    containment: Containment,  # how well the tool's programs are confined
) -> tuple[tuple[str, ...], ...]:
    """Suggests rules for the settings that would allow a call from now on, narrowest first.

    Returns nothing if a rule of the settings, the tool itself or a deletion asks, or if the call
    cannot be judged by its parts: then a missing rule is not the only reason to ask.
    """
    if decision.verdict is not Verdict.ASK or decision.source != policy.source:
        return ()
    if spec.subject is not None and spec.subject.kind is SubjectKind.COMMAND:
        offers = _for_commands(spec, decision.uncovered)
    else:
        offers = [(narrowest_rule(Call(spec, arguments, policy.roots)),)]
    return tuple(
        dict.fromkeys(
            offer
            for offer in offers
            if all(_is_rule(rule) and len(rule) <= LONGEST for rule in offer)
            and policy.allowing(offer).judge(spec, arguments, containment=containment).verdict
            is Verdict.ALLOW
        )
    )


def _for_commands(spec: ToolSpec, commands: Sequence[Sequence[Word]]) -> list[tuple[str, ...]]:
    lines = [line_rule([words], ()) for words in commands]
    if not lines or any(not line or _runs_code(line) for line in lines):
        return []
    wider = [_family(words) or line for words, line in zip(commands, lines, strict=True)]
    offers = [
        tuple(dict.fromkeys(f"{spec.name}({line})" for line in each)) for each in (lines, wider)
    ]
    return [offer for offer in offers if len(offer) <= MOST_RULES]


def _family(words: Sequence[Word]) -> str:
    """Returns a rule for similar commands on other things; empty if none are known."""
    name, first, second, *_ = *(word.text or "" for word in words), "", "", ""
    known = base_name(name)
    if known in WHOLE:
        count = 1
    elif first in FAMILIES.get(known, ()):
        count = 2
    elif (known in RUNS_SCRIPTS and first == "run" and second) or (
        INTERPRETERS.fullmatch(known) and first == "-m" and second in MODULES
    ):
        count = 3
    else:
        return ""
    return f"{line_rule([words[:count]], ())} *"


def _runs_code(line: str) -> bool:
    """Returns whether an interpreter gets code as text, which no rule could recognize again."""
    return any(
        INTERPRETERS.fullmatch(base_name(each.words[0].text or "")) and inner_commands(each.words)
        for found in ShellCommand.parse(line).found
        for each in found
    )


def _is_rule(text: str) -> bool:
    try:
        Rule.parse(text)
    except ValueError:
        return False
    return True
