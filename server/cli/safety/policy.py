"""`toolcrib policy`: shows the rules, and how they decide about a call."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import typer

from server.cli.terminal.options import (
    ConfigOption,
    DataDirOption,
    FunctionsOption,
    JsonOption,
    RootOption,
)
from server.cli.terminal.screen import echo, print_json
from tools.core.errors import InvalidArgumentsError
from tools.policy.verdict import Containment, Decision, Verdict

if TYPE_CHECKING:
    from server.settings import Settings
    from tools.core.registry import ToolRegistry
    from tools.core.spec import ToolSpec
    from tools.policy.policy import Policy
    from tools.sandbox.processes.confinement.denied_paths import DeniedPaths


class Action(StrEnum):
    """The action of the command."""

    SHOW = "show"
    TEST = "test"
    SUGGEST = "suggest"


def policy(  # noqa: PLR0913, PLR0917  # one parameter an option
    action: Annotated[
        Action,
        typer.Argument(help="Show the rules, test a call, or suggest rules for the project."),
    ],
    tool: Annotated[str | None, typer.Argument(help="Tool to test.")] = None,
    arguments: Annotated[str, typer.Argument(help="Its arguments, a JSON object.")] = "{}",
    confined: Annotated[
        bool | None,
        typer.Option(
            "--confined/--unconfined",
            help="Judge it as if its programs were confined, or unconfined; by default, as they"
            " are here.",
        ),
    ] = None,
    write: Annotated[
        bool,
        typer.Option("--write", help="Write suggested rules to the settings, after a question."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Answer that question by yes.")] = False,
    as_json: JsonOption = False,
    functions: FunctionsOption = None,
    root: RootOption = None,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Show the rules by precedence, or which of them decides about a call.

    Without calling it: toolcrib policy test bash '{"command": "git status"}'

    Rules for the project at the root: toolcrib policy suggest
    """
    from server.cli.opened import tools_of
    from server.composition.policy import make_policy
    from server.settings.sources import load

    flags = {"root": root, "data_dir": data_dir, "functions.paths": functions or None}
    settings = load(flags, config_file=config)
    if action is Action.SUGGEST:
        from server.cli.safety.suggest import suggest

        suggest(settings, write=write, yes=yes, as_json=as_json)
        return
    registry = tools_of(settings, tool)
    made = make_policy(settings, registry, settings.policy)
    for warning in _warnings(made, registry):
        echo(f"Warning: {warning}", err=True)
    if action is Action.TEST:
        look = partial(_look, settings, made, confined)
        shown = _test(made, registry, tool, arguments, look)
    else:
        _, denied = _look(settings, made, None, registry.find("bash"))
        shown = {**_rules(made, settings), **_denied_paths(denied)}
    if as_json:
        print_json(shown)
    else:
        echo("\n".join(_lines(shown)))


def _test(
    made: Policy,
    registry: ToolRegistry,
    tool: str | None,
    arguments: str,
    look: Callable[[ToolSpec], tuple[Containment, DeniedPaths | None]],
) -> dict[str, Any]:
    """Returns the policy's decision about a call."""
    if tool is None:
        raise InvalidArgumentsError(
            "No tool was named.",
            next_actions=['Try `toolcrib policy test bash \'{"command": "ls"}\'`.'],
        )
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise InvalidArgumentsError(
            f"The arguments {arguments!r} are not a JSON object.",
            next_actions=['Write them as in \'{"command": "git status"}\'.'],
        )
    spec = registry.find(tool)
    checked = spec.validate(given)
    containment, denied = look(spec)
    decision = made.judge(spec, checked, containment=containment)
    decision = decision.asking({} if denied is None else denied.unheld)
    return {
        "tool": spec.name,
        "verdict": decision.verdict,
        "rule": decision.rule,
        "source": decision.source,
        "reason": decision.reason,
        "parts": list(decision.parts),
        **(
            _answers(made, spec, checked, decision, containment)
            if decision.verdict is Verdict.ASK and not (denied and denied.unheld)
            else {}
        ),
        **_denied_paths(denied),
    }


def _look(
    settings: Settings, made: Policy, confined: bool | None, spec: ToolSpec
) -> tuple[Containment, DeniedPaths | None]:
    """Returns the containment of a tool's programs and their denied paths, assumed or real."""
    if confined is None:
        return anyio.run(_look_for_real, settings, made, spec)
    if not confined:
        return Containment.NONE, None
    reaches = settings.system.network and not spec.in_cell
    return Containment.CONFINED if reaches else Containment.OFFLINE, None


async def _look_for_real(
    settings: Settings, made: Policy, spec: ToolSpec
) -> tuple[Containment, DeniedPaths | None]:
    from server.composition.machine import MachineParts
    from tools.core.permission import limits_of

    machine = MachineParts(settings, os.environ, denied=lambda: made.denied_places).machine()
    async with machine.running():
        return await limits_of(spec, machine)


def _denied_paths(denied: DeniedPaths | None) -> dict[str, Any]:
    """Returns the paths denied to programs here, and the rules that are not enforced."""
    if denied is None:
        return {}
    return {
        "programs": {
            "hidden": denied.hidden,
            "read_only": denied.read_only,
            "not_enforced": denied.unheld,
        }
    }


def _answers(
    made: Policy,
    spec: ToolSpec,
    arguments: Mapping[str, Any],
    decision: Decision,
    containment: Containment,
) -> dict[str, Any]:
    """Returns the possible answers that cover more than one call."""
    from tools.policy.suggested_rules import grant_for, offers_for

    grant = grant_for(made, spec, arguments)
    offers = offers_for(made, spec, arguments, decision, containment)
    return {**({"grant": grant} if grant else {}), **({"offers": offers} if offers else {})}


def _rules(made: Policy, settings: Settings) -> dict[str, Any]:
    """Returns the rules in order of precedence."""
    rules = [
        {"verdict": verdict, "rule": rule.text, "source": "settings"}
        for verdict in (Verdict.DENY, Verdict.ASK, Verdict.ALLOW)
        for rule in made.rules[verdict]
    ]
    rules += [
        {
            "verdict": each.verdict,
            "rule": each.rule.text,
            "source": f"profile {made.profile}",
            "reason": each.reason,
        }
        for each in made.profile_rules
    ]
    return {"profile": made.profile, "root": str(settings.root), "rules": rules}


def _warnings(made: Policy, registry: ToolRegistry) -> Iterator[str]:
    """Yields warnings about rules that match no tool, can never match, or allow any program."""
    from server.composition.policy import open_ended_rules

    yield from open_ended_rules(made.rules[Verdict.ALLOW], registry)
    specs = registry.specs()
    for verdict, rules in made.rules.items():
        for rule in rules:
            if rule.selector.place_effect is not None:
                continue
            allows = verdict is Verdict.ALLOW
            named = (rule.selector.other_name(each, registry.get, allows) for each in specs)
            if not any(map(rule.selector.fits, specs, named)):
                yield f"the rule {rule.text!r} applies to no current tool."
            elif rule.selector.name:
                problem = rule.problem(registry.find(rule.selector.name))
                if problem:
                    yield f"the rule {rule.text!r} can never match: {problem}."


def _lines(shown: Mapping[str, Any]) -> Iterator[str]:
    if "verdict" in shown:
        yield f"{shown['verdict']}: {shown['tool']}"
        yield f"rule: {shown['rule']} ({shown['source']})"
        yield f"why: {shown['reason']}"
        yield from (f"  {part}" for part in shown["parts"])
        if "grant" in shown:
            yield f"an approval may be remembered as: {shown['grant']}"
        for offer in shown.get("offers", ()):
            yield f"it would be allowed by: {', '.join(offer)}"
        yield from _program_lines(shown)
        return
    yield f"Profile {shown['profile']}, root {shown['root']}. Deny overrides ask, ask overrides"
    yield "allow. Rules in the settings override the profile, whose first match decides."
    for each in shown["rules"]:
        reason = f"  {each['reason']}" if "reason" in each else ""
        yield f"{each['verdict']:<6} {each['rule']}  ({each['source']}){reason}"
    yield from _program_lines(shown)


def _program_lines(shown: Mapping[str, Any]) -> Iterator[str]:
    programs = shown.get("programs", {})
    for kind, said in (("hidden", "hidden from programs"), ("read_only", "read-only to programs")):
        yield from (f"{said}: {path} ({rule})" for path, rule in programs.get(kind, {}).items())
    for rule, why in programs.get("not_enforced", {}).items():
        yield f"not enforced for programs: {rule}, as {why}; they ask each time"
