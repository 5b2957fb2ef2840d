"""Rules about commands, found by the names of these."""

from __future__ import annotations

from collections.abc import Sequence

from tools.policy.index import Index
from tools.policy.matching import Fitted
from tools.policy.shell.words import CommandPattern, LinePattern

__all__ = ["NO_COMMAND_RULES", "CommandRules"]


class CommandRules:
    """Those of a list of rules that are about commands.

    Args:
        rules: The rules.

    Attributes:
        single: Those that name one command, and that.
        several: Those that name a line of several, and that.
    """

    def __init__(self, rules: Sequence[Fitted]) -> None:
        single: list[tuple[Fitted, CommandPattern]] = []
        self.several: list[tuple[Fitted, LinePattern]] = []
        for rule in rules:
            if isinstance(rule.pattern, LinePattern):
                if len(rule.pattern.commands) == 1:
                    single.append((rule, rule.pattern.commands[0]))
                else:
                    self.several.append((rule, rule.pattern))
        self.single = Index(single, lambda each: each[1].name)

    def __bool__(self) -> bool:
        return bool(self.single.rules or self.several)

    def __add__(self, others: CommandRules) -> CommandRules:
        if not (self and others):
            return self or others
        mine, theirs = ([*each.single.rules, *each.several] for each in (self, others))
        return CommandRules([rule for rule, _ in (*mine, *theirs)])


NO_COMMAND_RULES = CommandRules(())
