"""Rules applied to one tool, indexed by the first thing they name."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tools.core.spec import Effect, SubjectKind, ToolSpec
from tools.policy.calls import Call, Decision, Index, Verdict, reads_files, writes_files
from tools.policy.forms import EVERY_CALL, FORMS, Form, LineForm, PathForm
from tools.policy.rules import Rule
from tools.policy.shell.command_match import Match
from tools.policy.shell.words import CommandPattern, LinePattern
from tools.sandbox.files.protected_names import OBEYED, Name


@dataclass(frozen=True, slots=True)
class Fitted:
    """A rule as applied to one tool."""

    rule: Rule
    form: Form = EVERY_CALL
    problem: str = ""  # why it can never match a call of this tool, although it names the tool

    def forbids(self, call: Call) -> Match:
        """Returns how surely this deny or ask rule applies to a call."""
        if self.problem:  # whoever wrote the rule did not mean it to be ignored
            return Match.YES
        return self.form.forbids(call)

    def permits(self, call: Call) -> bool:
        """Returns whether this allow rule applies to a call; it must name the call's secret."""
        if call.secret is not None and not self.rule.names(call.secret_parameter):
            return False
        return not self.problem and self.form.permits(call)


def fitted(rule: Rule, spec: ToolSpec, roots: tuple[str, ...], bare: str = "") -> Fitted | None:
    """Applies a rule to a tool, which `bare` may name too; None if it is about other tools."""
    if rule.selector.place_effect is not None:
        touches = reads_files if rule.selector.place_effect is Effect.READ else writes_files
        if spec.subject is None or spec.subject.kind is not SubjectKind.PATH or not touches(spec):
            return None
        return Fitted(rule, PathForm.parse(rule.specifier, roots))
    if not rule.selector.fits(spec, bare):
        return None
    problem = rule.problem(spec)
    if problem:
        return Fitted(rule, problem=problem) if rule.selector.name else None
    if not rule.specifier or rule.arguments is not None or spec.subject is None:
        return Fitted(rule, rule.arguments or EVERY_CALL)
    return Fitted(rule, FORMS[spec.subject.kind].parse(rule.specifier, roots))


def fitted_grants(
    grants: Sequence[str], spec: ToolSpec, roots: tuple[str, ...]
) -> tuple[Fitted, ...]:
    """Applies grants to a tool; a ValueError if one of them is not a rule."""
    return tuple(filter(None, (fitted(_parse(text), spec, roots) for text in grants)))


@lru_cache(maxsize=256)
def _parse(text: str) -> Rule:
    return Rule.parse(text)


class CommandRules:
    """The rules about commands in a list."""

    def __init__(self, rules: Sequence[Fitted]) -> None:
        single: list[tuple[Fitted, CommandPattern]] = []
        self.several: list[tuple[Fitted, LinePattern]] = []  # about lines of several commands
        for rule in rules:
            match rule.form:
                case LineForm(LinePattern(commands=(command,))):
                    single.append((rule, command))
                case LineForm(line):
                    self.several.append((rule, line))
        self.single = Index(single, lambda each: each[1].name)

    def __bool__(self) -> bool:
        return bool(self.single.rules or self.several)

    def __add__(self, others: CommandRules) -> CommandRules:
        if not (self and others):
            return self or others
        mine, theirs = ([*each.single.rules, *each.several] for each in (self, others))
        return CommandRules([rule for rule, _ in (*mine, *theirs)])


NO_COMMAND_RULES = CommandRules(())


class FittedRules(Index[Fitted]):
    """A list of rules as applied to one tool; those about commands are apart from the others."""

    def __init__(self, rules: Sequence[Fitted]) -> None:
        others = [rule for rule in rules if not isinstance(rule.form, LineForm)]
        super().__init__(others, lambda rule: rule.form.key)
        self.commands = CommandRules(rules)
        self.texts = frozenset(rule.rule.text for rule in rules)
        self.has_paths = any(isinstance(rule.form, PathForm) for rule in rules)

    def __bool__(self) -> bool:
        return bool(self.texts)


NO_RULES = FittedRules(())


def ask_about_config(usual: Decision, names: Collection[Name]) -> Decision:
    """Asks about a write to configuration files; no profile or remembered approval answers this."""
    if usual.verdict is Verdict.DENY:
        return usual
    name = min(names)
    path = "/".join(name)
    reason = f"{OBEYED[name]} what stands in {path}, and nothing confines that."
    return Decision(Verdict.ASK, f"obeyed:{path}", "protection", reason)


def names_all(rule: Fitted, names: Collection[Name]) -> bool:
    """Returns whether the path of a rule spells out all of the names."""
    if not isinstance(rule.form, PathForm):
        return False
    written = [part and part.literal for part in rule.form.pattern.components]
    return all(
        any(tuple(written[at : at + len(name)]) == name for at in range(len(written)))
        for name in names
    )
