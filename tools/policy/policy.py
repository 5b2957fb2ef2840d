"""The policy: judges each call by the rules in the settings, then by those of the profile."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any

from tools.core.spec import Confirmation, FileAct, SubjectKind, ToolScope, ToolSpec
from tools.policy.calls import GRANT, SETTINGS, TOOL, Call, Containment, Decision, Verdict, stricter
from tools.policy.forms import EVERY_CALL, Arguments
from tools.policy.matching import (
    NO_COMMAND_RULES,
    NO_RULES,
    ClosedPlaces,
    DeniedPlace,
    Fitted,
    FittedRules,
    JudgedPlaces,
    LineFiles,
    PlaceRules,
    ask_about_config,
    find_denied,
    fitted,
    fitted_grants,
    names_all,
)
from tools.policy.rules import ASKING_TO_DELETE, PROFILES, Rule, using_secret
from tools.policy.shell.command_match import Match
from tools.policy.shell.deletions import LookAt
from tools.policy.shell.lines import LineRules
from tools.policy.shell.shell_command import ShellCommand


@dataclass(frozen=True, slots=True)
class _Fit:
    """The part of the policy for one tool."""

    spec: ToolSpec
    deny: FittedRules
    ask: FittedRules
    allow: FittedRules
    # The decision without a matching rule, by the profile and the tool's own confirmation.
    base: dict[Containment, tuple[Decision, Decision | None]]
    confirm_if: Arguments  # which calls need its own confirmation
    closed: ClosedPlaces
    is_closed: bool  # whether any place is
    has_rules: bool  # whether any rule of the settings may be about a call of the tool
    has_paths: bool  # whether any of them is about paths
    has_line: bool  # whether the tool runs a shell's line


class Policy:
    """Judges calls; a rule that cannot be parsed is a ValueError, an unknown profile a KeyError."""

    def __init__(
        self,
        # Applies if no rule in the settings matches: read-only, cautious, standard or trusting.
        profile: str = "standard",
        *,
        allow: Sequence[str] = (),  # rules for calls that may run
        ask: Sequence[str] = (),  # rules for calls that the user must approve
        deny: Sequence[str] = (),  # rules for calls that never run
        # The directory that paths are relative to; without it, rules with absolute paths never
        # match.
        root: Path | None = None,
        # Returns the tool with a name, for rules that close places to all tools by naming one.
        find: Callable[[str], ToolSpec | None] = lambda _name: None,
        # Measures how much a line would delete; without it, every deletion asks.
        look: LookAt | None = None,
    ) -> None:
        self.profile = profile  # name of the profile
        # The rules in the settings
        self.rules = {
            Verdict.DENY: tuple(map(Rule.parse, deny)),
            Verdict.ASK: tuple(map(Rule.parse, ask)),
            Verdict.ALLOW: tuple(map(Rule.parse, allow)),
        }
        self.profile_rules = PROFILES[profile]  # its rules, in order of precedence
        self.source = f"profile {profile}"  # the name of the profile's rules in decisions
        # The absolute root, in each of its spellings; empty without a root.
        self.roots: tuple[str, ...] = ()
        if root is not None:
            absolute = os.path.abspath(root)  # noqa: PTH100  # links in the root's path are kept
            self.roots = tuple(dict.fromkeys((absolute, os.path.realpath(root))))
        self._find = find
        self._look = look
        self._fits: dict[str, _Fit] = {}

    def judge(
        self,
        spec: ToolSpec,
        arguments: Mapping[str, Any],  # its validated arguments
        *,
        containment: Containment = Containment.NONE,  # how well the tool's programs are confined
        # Rules from remembered approvals; they answer questions but never override a denial.
        grants: Sequence[str] = (),
    ) -> Decision:
        """Returns the decision on a call; one of several files is as strict as about each."""
        about = spec.subject
        if about is not None and about.acts is not None and about.parameter not in arguments:
            judge = partial(self.judge, containment=containment, grants=grants)
            judged = (
                self._judge_act(spec, {**arguments, about.parameter: act.path}, act, judge, grants)
                for act in about.acts(arguments)
            )
            return reduce(stricter, judged)
        fit, call = self._fit(spec), Call(spec, arguments, self.roots)
        base = self._base(fit, call, containment)
        config_files = call.config_files
        if not (fit.has_rules or grants or config_files or fit.has_line):
            return base
        hit = self._hit(fit, call)
        if hit is not None and hit.verdict is Verdict.DENY:
            return hit
        if spec.is_proxy:
            return base
        allow = fit.allow.about(call.keys)
        decision = hit or _allowed(allow, call, SETTINGS) or base
        if config_files:
            named = [rule for rule in allow if hit is None and names_all(rule, config_files)]
            return _allowed(named, call, SETTINGS) or ask_about_config(decision, config_files)
        granted = NO_RULES
        if grants and arguments.get("cwd", ".") == ".":  # in another directory it may differ
            granted = FittedRules(fitted_grants(grants, spec, self.roots))
        is_line = fit.has_line and call.subject is not None
        if is_line:
            decision = self._judge_line(
                fit,
                call,
                granted,
                decision,
                is_free=hit is None,
                is_confined=containment is not Containment.NONE,
                asks_to_delete=decision is base and self.profile in ASKING_TO_DELETE,
            )
        if decision.verdict is Verdict.ASK and not (is_line and decision.rule in fit.deny.texts):
            decision = _allowed(granted.about(call.keys), call, GRANT) or decision
        return decision

    def judge_as(
        self,
        named: ToolSpec | None,  # another tool, under whose name the call was sent
        spec: ToolSpec,
        arguments: Mapping[str, Any],
        *,
        containment: Containment = Containment.NONE,
        grants: Sequence[str] = (),
    ) -> Decision:
        """Returns the decision on a call, for which rules about a whole other name hold too."""
        decision = self.judge(spec, arguments, containment=containment, grants=grants)
        if named is None:
            return decision
        fit, call = self._fit(named), Call(spec, arguments, self.roots)
        for verdict, rules in ((Verdict.DENY, fit.deny), (Verdict.ASK, fit.ask)):
            whole = [text for text in rules.texts if not Rule.parse(text).specifier]
            if whole and (verdict is Verdict.DENY or not self._granted(call, grants)):
                does = "denies" if verdict is Verdict.DENY else "asks about"
                what = f"{does} {named.name}, the name that the call was sent under"
                by_name = Decision.by_rule(verdict, min(whole), what, SETTINGS)
                return stricter(decision, by_name)
        return decision

    def _granted(self, call: Call, grants: Sequence[str]) -> Decision | None:
        granted = FittedRules(fitted_grants(grants, call.spec, self.roots))
        return _allowed(granted.about(call.keys), call, GRANT)

    def _judge_act(
        self,
        spec: ToolSpec,
        arguments: Mapping[str, Any],
        act: FileAct,
        judge: Callable[[ToolSpec, Mapping[str, Any]], Decision],
        grants: Sequence[str],
    ) -> Decision:
        """Judges what a call does to one file, also by the rules about the file tool."""
        call = Call(spec, arguments, self.roots)
        if call.config_files:
            reason = f"{act.path!r} is a file that other programs obey: change it with {act.tool}."
            return Decision(Verdict.DENY, spec.name, TOOL, reason)
        own, file_tool = judge(spec, arguments), self._find(act.tool)
        if file_tool is None:
            return own
        other = judge(file_tool, {"file_path": act.path})
        if other.verdict is Verdict.ASK:  # a grant for this file is for all that is done to it
            other = self._granted(call, grants) or other
        if Verdict.DENY not in {own.verdict, other.verdict}:
            if other.source == self.source:  # the profile; the same for both
                return own
            if own.source == self.source:
                return other
        return stricter(own, other)

    @property
    def denied_places(self) -> tuple[DeniedPlace, ...]:
        """The places that rules deny to every tool and program."""
        rules = self.rules[Verdict.DENY]
        return tuple(find_denied(rules, self.roots, self._find)) if rules else ()

    def allowing(self, rules: Sequence[str]) -> Policy:
        """Returns a copy with more allow rules; a ValueError if one cannot be parsed."""
        more = copy(self)
        allow = (*self.rules[Verdict.ALLOW], *map(Rule.parse, rules))
        more.rules = {**self.rules, Verdict.ALLOW: allow}
        more._fits = {}  # noqa: SLF001  # an instance of the same class
        return more

    def places(
        self,
        spec: ToolSpec,
        arguments: Mapping[str, Any],  # its validated arguments
        *,
        containment: Containment = Containment.NONE,  # how well the tool's programs are confined
        is_confirmed: bool = False,  # whether the user approves this call itself
    ) -> PlaceRules | None:
        """Returns the rules about the files a call may open; None if there are none."""
        fit = self._fit(spec)
        call = Call(spec, arguments, self.roots)
        if not call.config_files and (not fit.has_paths or call.subject is None):
            return fit.closed if fit.is_closed else None
        judge = partial(self.judge, spec, containment=containment)
        return JudgedPlaces(
            closed=fit.closed,
            spelled=call.path,
            was_asked=lambda: judge(arguments).verdict is Verdict.ASK,
            judge=lambda path: judge({**arguments, _parameter(spec): path}),
            asking=partial(self._asking, fit, arguments),
            config_files=call.config_files,
            is_confirmed=is_confirmed,
        )

    def _judge_line(
        self,
        fit: _Fit,
        call: Call,
        granted: FittedRules,
        otherwise: Decision,
        *,
        is_free: bool,
        is_confined: bool,
        asks_to_delete: bool,
    ) -> Decision:
        """Judges a shell line by its commands and the files it opens."""
        is_ruled = self.rules[Verdict.DENY] or self.rules[Verdict.ASK] or asks_to_delete
        if otherwise.verdict is Verdict.ALLOW and not is_ruled:
            return otherwise
        cwd = str(call.argument("cwd") or ".")
        variables = tuple((call.argument("env") or {}).items())
        command = ShellCommand.parse(call.subject or "", variables)
        return LineRules(
            deny=fit.deny.commands,
            ask=fit.ask.commands,
            allow=fit.allow.commands if is_free else NO_COMMAND_RULES,
            grants=granted.commands,
            otherwise=otherwise,
            asks_to_delete=asks_to_delete,
            look=self._look,
            files=LineFiles(cwd, self.roots, self._find, self.judge),
            variables=variables,
            is_free=is_free,
            is_confined=is_confined,
        ).judge(command)

    def _hit(self, fit: _Fit, call: Call) -> Decision | None:
        """Returns the decision of deny and ask rules, except those about shell commands."""
        closing = fit.closed.about(call) if fit.is_closed else None
        if closing is not None:
            return Decision.by_rule(Verdict.DENY, closing, f"denies {call.path!r}", SETTINGS)
        doubt: Decision | None = None
        for rules, verdict in ((fit.deny, Verdict.DENY), (fit.ask, Verdict.ASK)):
            for rule in rules.about(call.keys):
                match = rule.forbids(call)
                if match is Match.YES and not (doubt and verdict is Verdict.ASK):
                    what = _what(rule, verdict, call)
                    return Decision.by_rule(verdict, rule.rule.text, what, SETTINGS)
                if match is Match.MAYBE and doubt is None:
                    what = f"cannot be ruled out of {call.subject!r}, whose form is unusual"
                    doubt = Decision.by_rule(Verdict.ASK, rule.rule.text, what, SETTINGS)
        return doubt

    def _base(self, fit: _Fit, call: Call, containment: Containment) -> Decision:
        """Returns the decision if no rule in the settings matches."""
        said, confirmation = fit.base[containment]
        if call.secret is not None and said.verdict is not Verdict.DENY:
            return using_secret(call)
        return said if confirmation is None or not fit.confirm_if.permits(call) else confirmation

    def _asking(self, fit: _Fit, arguments: Mapping[str, Any], path: str) -> frozenset[str]:
        call = Call(fit.spec, {**arguments, _parameter(fit.spec): path}, self.roots)
        near = fit.ask.about(call.keys)
        return frozenset(rule.rule.text for rule in near if rule.forbids(call))

    def _fit(self, spec: ToolSpec) -> _Fit:
        fit = self._fits.get(spec.name)
        if fit is None or fit.spec is not spec:
            rules = {each: self._applied_rules(spec, each) for each in Verdict}
            denied = () if spec.scope is ToolScope.MCP else self.denied_places
            fit = self._fits[spec.name] = _Fit(
                spec=spec,
                deny=rules[Verdict.DENY],
                ask=rules[Verdict.ASK],
                allow=rules[Verdict.ALLOW],
                base={each: self._base_decisions(spec, each) for each in Containment},
                confirm_if=Arguments.parse(spec.confirm_if) if spec.confirm_if else EVERY_CALL,
                closed=ClosedPlaces.of(denied, spec),
                is_closed=bool(denied),
                has_rules=bool(denied) or any(rules.values()),
                has_paths=any(each.has_paths for each in rules.values()),
                has_line=spec.subject is not None and spec.subject.kind is SubjectKind.COMMAND,
            )
        return fit

    def _applied_rules(self, spec: ToolSpec, verdict: Verdict) -> FittedRules:
        allows = verdict is Verdict.ALLOW
        found = (
            fitted(rule, spec, self.roots, rule.selector.other_name(spec, self._find, allows))
            for rule in self.rules[verdict]
        )
        return FittedRules(list(filter(None, found)))

    def _base_decisions(
        self, spec: ToolSpec, containment: Containment
    ) -> tuple[Decision, Decision | None]:
        """Returns the profile's decision on a tool, and the tool's own if that is stricter."""
        if spec.is_proxy:
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


def _allowed(rules: Sequence[Fitted], call: Call, source: str) -> Decision | None:
    for rule in rules:
        if rule.permits(call):
            return Decision.by_rule(Verdict.ALLOW, rule.rule.text, "allows it", source)
    return None


def _what(rule: Fitted, verdict: Verdict, call: Call) -> str:
    """Describes the effect of a rule on a call, as the rest of a sentence."""
    if rule.problem:
        return f"cannot be parsed, so it applies to every call: {rule.problem}"
    says = "denies" if verdict is Verdict.DENY else "asks about"
    return f"{says} {call.path or call.subject!r}" if rule.form.is_about_subject else f"{says} it"


def _parameter(spec: ToolSpec) -> str:
    return spec.subject.parameter if spec.subject else ""
