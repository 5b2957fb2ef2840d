"""The policy: judges each call by the rules of the settings, then by those of the profile."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tools.core.spec import Confirmation, Effect, SubjectKind, ToolScope, ToolSpec
from tools.policy.calls import Call
from tools.policy.forms import PathForm
from tools.policy.matching import (
    NO_COMMAND_RULES,
    NO_RULES,
    Fitted,
    FittedRules,
    fitted,
    fitted_grants,
    names_them,
    obeyed_names,
    unless_denied,
)
from tools.policy.places import (
    ClosedPlaces,
    DeniedPlace,
    JudgedPlaces,
    LineFiles,
    PlaceRules,
    closed_index,
    find_denied,
)
from tools.policy.profiles import ASKING_TO_DELETE, PROFILES, using_secret
from tools.policy.rules import Rule
from tools.policy.shell.command_match import Match
from tools.policy.shell.deletions import Deletions, LookAt
from tools.policy.shell.lines import LineRules
from tools.policy.shell.shell_command import ShellCommand
from tools.policy.specifiers import Arguments
from tools.policy.verdict import TOOL, Containment, Decision, Verdict

SETTINGS = "settings"
GRANT = "grant"


@dataclass(frozen=True, slots=True)
class _Fit:
    """Everything of the policy that is about one tool.

    Attributes:
        spec: The tool.
        deny: Rules that deny its calls.
        ask: Rules that ask about them.
        allow: Rules that allow them.
        base: What the profile and its own confirmation say of calls that no rule fits, by how far
            what it runs is held back.
        confirm_if: Which calls its own confirmation means; None for all.
        closed: Places that are denied to it.
        has_paths: Whether any of the rules is about paths.
        denying: The texts of the rules that deny.
    """

    spec: ToolSpec
    deny: FittedRules
    ask: FittedRules
    allow: FittedRules
    base: dict[Containment, tuple[Decision, Decision | None]]
    confirm_if: Arguments | None
    closed: ClosedPlaces | None
    has_paths: bool
    denying: frozenset[str]


class Policy:
    """Judges calls.

    Attributes:
        profile: Name of the profile.
        profile_rules: What it says, in the order of force.
        rules: The rules of the settings.

    Args:
        profile: What holds where no rule of the settings fits: read-only, cautious, standard or
            trusting.
        allow: Rules of calls that may run.
        ask: Rules of calls that a person is asked about.
        deny: Rules of calls that never run.
        root: The directory that paths are relative to; without it, rules with absolute paths match
            nothing.
        find: Gives the tool of a name, for rules that close places to all tools by naming one.
        look: Tells how much a line would delete; without it, every line that deletes asks.

    Raises:
        ValueError: If a rule cannot be read.
        KeyError: If there is no such profile.
    """

    def __init__(
        self,
        profile: str = "standard",
        *,
        allow: Sequence[str] = (),
        ask: Sequence[str] = (),
        deny: Sequence[str] = (),
        root: Path | None = None,
        find: Callable[[str], ToolSpec | None] = lambda _name: None,
        look: LookAt | None = None,
    ) -> None:
        self.profile = profile
        self.rules = {
            Verdict.DENY: tuple(map(Rule.parse, deny)),
            Verdict.ASK: tuple(map(Rule.parse, ask)),
            Verdict.ALLOW: tuple(map(Rule.parse, allow)),
        }
        self.profile_rules = PROFILES[profile]
        self._roots = () if root is None else _spellings(root)
        self._find = find
        self._look = look
        self._fits: dict[str, _Fit] = {}

    def judge(
        self,
        spec: ToolSpec,
        arguments: Mapping[str, Any],
        *,
        containment: Containment = Containment.NONE,
        grants: Sequence[str] = (),
    ) -> Decision:
        """What the rules say of a call.

        Args:
            spec: The tool.
            arguments: Its arguments, as validation made them.
            containment: How far what the tool runs is held back.
            grants: Rules that were remembered of approvals; they answer questions, and lift no
                denial.
        """
        fit = self._fit(spec)
        call = Call(spec, arguments, self._roots)
        base = self._base(fit, call, containment)
        obeyed = obeyed_names(call)
        has_rules = fit.deny or fit.ask or fit.allow or grants or fit.closed
        if not (has_rules or obeyed or _has_line(spec)):
            return base
        hit = self._hit(fit, call)
        if hit is not None and hit.verdict is Verdict.DENY:
            return hit
        if spec.passes_on:
            return base
        if obeyed:
            allow = fit.allow.about(call.keys)
            named = [rule for rule in allow if hit is None and names_them(rule, obeyed)]
            usual = hit or _allowed(allow, call, SETTINGS) or base
            return _allowed(named, call, SETTINGS) or unless_denied(usual, obeyed)
        granted = NO_RULES
        if grants and arguments.get("cwd", ".") == ".":  # elsewhere a line may mean something else
            granted = FittedRules(fitted_grants(grants, spec, self._roots))
        if _has_line(spec) and isinstance(call.subject, str):
            return self._judge_line(fit, call, granted, hit, base, containment)
        decision = hit or _allowed(fit.allow.about(call.keys), call, SETTINGS) or base
        if decision.verdict is Verdict.ASK:
            decision = _allowed(granted.about(call.keys), call, GRANT) or decision
        return decision

    @property
    def source(self) -> str:
        """Where the rules of the profile stand, as decisions name it."""
        return f"profile {self.profile}"

    @property
    def roots(self) -> tuple[str, ...]:
        """The root, absolute, in each of its spellings; none where there is no root."""
        return self._roots

    @property
    def denied_places(self) -> tuple[DeniedPlace, ...]:
        """The places that rules deny, whichever tool or program would open them."""
        rules = self.rules[Verdict.DENY]
        return tuple(find_denied(rules, self._roots, self._find)) if rules else ()

    def allowing(self, rules: Sequence[str]) -> Policy:
        """The same policy with more rules of the settings that allow.

        Raises:
            ValueError: If one of them cannot be read.
        """
        more = copy(self)
        allow = (*self.rules[Verdict.ALLOW], *map(Rule.parse, rules))
        more.rules = {**self.rules, Verdict.ALLOW: allow}
        more._fits = {}  # noqa: SLF001  # it is of this very class
        return more

    def places(
        self,
        spec: ToolSpec,
        arguments: Mapping[str, Any],
        *,
        containment: Containment = Containment.NONE,
        is_confirmed: bool = False,
    ) -> PlaceRules | None:
        """What the rules say of the files that a call may open; None where they say nothing.

        Args:
            spec: The tool.
            arguments: Its arguments, as validation made them.
            containment: How far what the tool runs is held back.
            is_confirmed: Whether a person is asked about this very call.
        """
        fit = self._fit(spec)
        call = Call(spec, arguments, self._roots)
        obeyed = obeyed_names(call)
        if not obeyed and (not fit.has_paths or call.subject is None):
            return fit.closed
        judge = partial(self.judge, spec, containment=containment)
        return JudgedPlaces(
            closed=fit.closed or ClosedPlaces(closed_index(()), closed_index(()), spec.name),
            spelled=call.path,
            was_asked=lambda: judge(arguments).verdict is Verdict.ASK,
            judge=lambda path: judge({**arguments, _parameter(spec): path}),
            asking=partial(self._asking, fit, arguments),
            obeyed=obeyed,
            is_confirmed=is_confirmed,
        )

    def _judge_line(
        self,
        fit: _Fit,
        call: Call,
        granted: FittedRules,
        hit: Decision | None,
        base: Decision,
        containment: Containment,
    ) -> Decision:
        """Judges a shell's line by the commands in it, and by the files that it opens."""
        otherwise = hit or _allowed(fit.allow.whole, call, SETTINGS) or base
        asks_to_delete = otherwise is base and self.profile in ASKING_TO_DELETE
        is_ruled = self.rules[Verdict.DENY] or self.rules[Verdict.ASK]
        if otherwise.verdict is Verdict.ALLOW and not (is_ruled or asks_to_delete):
            return otherwise
        variables = tuple((call.argument("env") or {}).items())
        command, cwd = (
            ShellCommand.parse(call.subject or "", variables),
            call.argument("cwd") or ".",
        )
        rules = LineRules(
            deny=fit.deny.commands,
            ask=fit.ask.commands,
            allow=fit.allow.commands if hit is None else NO_COMMAND_RULES,
            grants=granted.commands,
            otherwise=otherwise,
            deletions=Deletions.of(command, str(cwd), self._look) if asks_to_delete else None,
            files=LineFiles(str(cwd), self._roots, self._find, self.judge),
            variables=variables,
            is_free=hit is None,
            is_confined=containment is not Containment.NONE,
        )
        decision = rules.judge(command)
        if decision.verdict is not Verdict.ASK or not granted or decision.rule in fit.denying:
            return decision
        return _allowed(granted.whole, call, GRANT) or decision

    def _hit(self, fit: _Fit, call: Call) -> Decision | None:
        """What rules say that deny or ask, commands of a shell aside."""
        closing = fit.closed.about(call) if fit.closed else None
        if closing is not None:
            return _decision(Verdict.DENY, closing, f"denies {call.path!r}")
        doubt: Decision | None = None
        for rules, verdict in ((fit.deny, Verdict.DENY), (fit.ask, Verdict.ASK)):
            for rule in rules.about(call.keys):
                match = rule.forbids(call)
                if match is Match.YES and not (doubt and verdict is Verdict.ASK):
                    return _decision(verdict, rule.rule.text, _what(rule, verdict, call))
                if match is Match.MAYBE and doubt is None:
                    what = f"cannot be ruled out of {call.subject!r}, whose form is unusual"
                    doubt = _decision(Verdict.ASK, rule.rule.text, what)
        return doubt

    def _base(self, fit: _Fit, call: Call, containment: Containment) -> Decision:
        """What holds where no rule of the settings fits."""
        said, confirmation = fit.base[containment]
        if call.secret is not None and said.verdict is not Verdict.DENY:
            return using_secret(call)
        if confirmation is None:
            return said
        if fit.confirm_if is not None and not fit.confirm_if.match(call.argument):
            return said
        return confirmation

    def _asking(self, fit: _Fit, arguments: Mapping[str, Any], path: str) -> frozenset[str]:
        call = Call(fit.spec, {**arguments, _parameter(fit.spec): path}, self._roots)
        near = fit.ask.about(call.keys)
        return frozenset(rule.rule.text for rule in near if rule.forbids(call))

    def _fit(self, spec: ToolSpec) -> _Fit:
        fit = self._fits.get(spec.name)
        if fit is None or fit.spec is not spec:
            fit = self._fits[spec.name] = self._made(spec)
        return fit

    def _made(self, spec: ToolSpec) -> _Fit:
        deny, ask, allow = (
            self._fitted(spec, verdict) for verdict in (Verdict.DENY, Verdict.ASK, Verdict.ALLOW)
        )
        return _Fit(
            spec=spec,
            deny=FittedRules(deny),
            ask=FittedRules(ask),
            allow=FittedRules(allow),
            base={containment: self._said(spec, containment) for containment in Containment},
            confirm_if=Arguments.parse(spec.confirm_if) if spec.confirm_if else None,
            closed=self._closed(spec),
            has_paths=any(isinstance(each.form, PathForm) for each in (*deny, *ask, *allow)),
            denying=frozenset(rule.rule.text for rule in deny),
        )

    def _fitted(self, spec: ToolSpec, verdict: Verdict) -> list[Fitted]:
        allows = verdict is Verdict.ALLOW
        found = (
            fitted(rule, spec, self._roots, rule.selector.other_name(spec, self._find, allows))
            for rule in self.rules[verdict]
        )
        return list(filter(None, found))

    def _said(self, spec: ToolSpec, containment: Containment) -> tuple[Decision, Decision | None]:
        """What the profile says of a tool, and the tool of itself where that is stricter."""
        if spec.passes_on:
            reason = "The call that it makes is judged itself."
            return Decision(Verdict.ALLOW, spec.name, TOOL, reason), None
        rule = next(
            each
            for each in self.profile_rules
            if each.rule.selector.fits(spec) and containment >= each.needs
        )
        said = Decision(rule.verdict, rule.rule.text, self.source, rule.reason)
        asks = spec.confirmation is Confirmation.REQUIRED or (
            spec.confirmation is Confirmation.RECOMMENDED and self.profile != "trusting"
        )
        if not asks or said.verdict is Verdict.DENY:
            return said, None
        word = spec.confirmation.value
        reason = f"{spec.name} asks unless a rule allows it (confirmation {word})."
        return said, Decision(Verdict.ASK, f"confirmation:{word}", TOOL, reason)

    def _closed(self, spec: ToolSpec) -> ClosedPlaces | None:
        """The places that are denied to every tool."""
        if spec.scope is ToolScope.MCP:
            return None
        denied = self.denied_places
        if not denied:
            return None
        to_reads, to_writes = (
            closed_index([(each.rule, each.pattern) for each in denied if effect in each.effects])
            for effect in (Effect.READ, Effect.WRITE)
        )
        return ClosedPlaces(to_reads, to_writes, spec.name, reads=Effect.READ in spec.effects)


def _allowed(rules: Sequence[Fitted], call: Call, source: str) -> Decision | None:
    for rule in rules:
        if rule.permits(call):
            return _decision(Verdict.ALLOW, rule.rule.text, "allows it", source)
    return None


def _what(rule: Fitted, verdict: Verdict, call: Call) -> str:
    """What a rule does to a call, as the rest of a sentence."""
    if rule.problem:
        return f"cannot be parsed, so it applies to every call: {rule.problem}"
    says = "denies" if verdict is Verdict.DENY else "asks about"
    return f"{says} {call.path or call.subject!r}" if rule.form.is_about_subject else f"{says} it"


def _decision(verdict: Verdict, rule: str, what: str, source: str = SETTINGS) -> Decision:
    return Decision(verdict, rule, source, f"The rule {rule!r} {what}.")


def _has_line(spec: ToolSpec) -> bool:
    return spec.subject is not None and spec.subject.kind is SubjectKind.COMMAND


def _parameter(spec: ToolSpec) -> str:
    return spec.subject.parameter if spec.subject else ""


def _spellings(root: Path) -> tuple[str, ...]:
    absolute = os.path.abspath(root)  # noqa: PTH100  # the root's own links stay as given
    return tuple(dict.fromkeys((absolute, os.path.realpath(root))))
