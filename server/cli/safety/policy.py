"""`toolcrib policy`: shows the rules, and how they decide about a call."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
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
from tools.policy.calls import Containment, Verdict

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
    rules = _Rules(settings, make_policy(settings, registry), registry)
    for warning in rules.warnings():
        echo(f"Warning: {warning}", err=True)
    shown = rules.test(tool, arguments, confined) if action is Action.TEST else rules.show()
    if as_json:
        print_json(shown)
    else:
        echo("\n".join(_lines(shown)))


@dataclass(frozen=True, slots=True)
class _Rules:
    """The rules in the settings, for the tools that there are."""

    settings: Settings
    policy: Policy
    registry: ToolRegistry

    def test(self, tool: str | None, arguments: str, confined: bool | None) -> dict[str, Any]:
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
        spec = self.registry.find(tool)
        checked = spec.validate(given)
        containment, denied = self._look(spec, confined)
        decision = self.policy.judge(spec, checked, containment=containment)
        decision = decision.asking({} if denied is None else denied.unheld)
        shown: dict[str, Any] = {
            "tool": spec.name,
            "verdict": decision.verdict,
            "rule": decision.rule,
            "source": decision.source,
            "reason": decision.reason,
            "parts": list(decision.parts),
        }
        if decision.verdict is Verdict.ASK and not (denied and denied.unheld):
            from tools.policy.suggested_rules import grant_for, offers_for

            # The possible answers that cover more than one call.
            grant = grant_for(self.policy, spec, checked)
            offers = offers_for(self.policy, spec, checked, decision, containment)
            shown |= {"grant": grant} if grant else {}
            shown |= {"offers": offers} if offers else {}
        return {**shown, **_denied_paths(denied)}

    def show(self) -> dict[str, Any]:
        """Returns the rules in order of precedence, and what they deny to programs here."""
        rules = [
            {"verdict": verdict, "rule": rule.text, "source": "settings"}
            for verdict in (Verdict.DENY, Verdict.ASK, Verdict.ALLOW)
            for rule in self.policy.rules[verdict]
        ]
        profile = self.policy.profile
        rules += [
            {
                "verdict": each.verdict,
                "rule": each.rule.text,
                "source": f"profile {profile}",
                "reason": each.reason,
            }
            for each in self.policy.profile_rules
        ]
        _, denied = self._look(self.registry.find("bash"), None)
        shown = {"profile": profile, "root": str(self.settings.root), "rules": rules}
        return {**shown, **_denied_paths(denied)}

    def warnings(self) -> Iterator[str]:
        """Yields warnings about rules that match no tool, can never match, or allow any program."""
        from server.composition.policy import open_ended_rules

        yield from open_ended_rules(self.policy.rules[Verdict.ALLOW], self.registry)
        specs, get = self.registry.specs(), self.registry.get
        for verdict, rules in self.policy.rules.items():
            for rule in rules:
                if rule.selector.place_effect is not None:
                    continue
                allows = verdict is Verdict.ALLOW
                named = (rule.selector.other_name(each, get, allows) for each in specs)
                if not any(map(rule.selector.fits, specs, named)):
                    yield f"the rule {rule.text!r} applies to no current tool."
                elif rule.selector.name:
                    problem = rule.problem(self.registry.find(rule.selector.name))
                    if problem:
                        yield f"the rule {rule.text!r} can never match: {problem}."

    def _look(
        self, spec: ToolSpec, confined: bool | None
    ) -> tuple[Containment, DeniedPaths | None]:
        """Returns the containment of a tool's programs and their denied paths, assumed or real."""
        if confined is not None:
            if not confined:
                return Containment.NONE, None
            reaches = self.settings.system.network and not spec.in_cell
            return Containment.CONFINED if reaches else Containment.OFFLINE, None
        from server.composition.machine import MachineParts
        from tools.core.permission import limits_of

        parts = MachineParts(self.settings, os.environ, denied=lambda: self.policy.denied_places)

        async def look() -> tuple[Containment, DeniedPaths | None]:
            machine = parts.machine()
            async with machine.running():
                return await limits_of(spec, machine)

        return anyio.run(look)


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
