"""Command lines under rules: judges each command; the strictest verdict decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from storage.index.bounded import clip_line
from tools.policy.calls import GRANT, SETTINGS, Decision, Verdict
from tools.policy.matching import CommandRules, Fitted, LineFiles
from tools.policy.shell.command_match import Match, match_command
from tools.policy.shell.deletions import Deletions, LookAt
from tools.policy.shell.plain_line import Opened, PlainLine, Run, harmless_variables, is_harmless
from tools.policy.shell.script import LONGEST
from tools.policy.shell.shell_command import Found, ShellCommand
from tools.policy.shell.words import CommandPattern, Word, base_name
from tools.policy.shell.wrappers import inner_commands

BUILTIN = "shell"  # the source of decisions that need no rule
DELETION = "deletes much"  # takes the place of a rule in decisions about deletions
MOST_NAMED = 3  # limit on the commands named in a reason
SHOWN = 80  # limit on the characters of a command shown


@dataclass(frozen=True, slots=True)
class LineRules:
    """The rules about commands that apply to a call."""

    deny: CommandRules
    ask: CommandRules
    allow: CommandRules
    grants: CommandRules  # rules from remembered approvals
    otherwise: Decision  # the decision on a command that no rule matches
    files: LineFiles  # judges the files that the line opens
    asks_to_delete: bool = False  # whether the user must approve deletions that no rule allows
    look: LookAt | None = None  # measures files
    variables: tuple[tuple[str, str], ...] = ()  # variables passed with the line, with their values
    # Whether harmless commands need no rule, because no rule asks about every line.
    is_free: bool = True
    is_confined: bool = False  # whether the files it opens are confined to the root

    def judge(self, command: ShellCommand) -> Decision:
        """Returns the decision on a line."""
        if len(command.line) > LONGEST and self.deny:
            reason = (
                f"A rule denies commands, and it has {len(command.line)} characters: more than"
                f" {LONGEST} are not searched for them. Write a script to a file, and run that."
            )
            rule = (self.deny.single.rules or self.deny.several)[0][0]
            return Decision(Verdict.DENY, rule.rule.text, SETTINGS, reason)
        uncovered: tuple[tuple[Word, ...], ...] = ()
        if command.plain is None:
            each = [self._judge_unplain(command)]
            shown = [clip_line(command.line, SHOWN)]
        else:
            judged = [self._judge_part(command, part) for part in range(len(command.found))]
            uncovered = self._uncovered_of(command.plain, judged)
            each, shown = [], []
            for run, said in zip(command.plain.runs, judged, strict=True):
                each += (said, *map(self._judge_opened, run.opened))
                shown += (clip_line(_line(_all_words(run)), SHOWN), *map(_opening, run.opened))
        parts = dict.fromkeys(
            f"{said.verdict}: {what} ({said.rule}, {said.source})"
            for what, said in zip(shown, each, strict=True)
        )
        order = (Verdict.DENY, Verdict.ASK, Verdict.ALLOW)
        # Of several equal verdicts, report one with a more specific reason than a missing rule.
        first = min(
            each,
            key=lambda said: (
                order.index(said.verdict),
                said is self.otherwise or said.source == BUILTIN,
            ),
        )
        if first.verdict is not Verdict.DENY:
            first = self._judge_whole(command) or first
        reason = first.reason
        if first.rule == DELETION:
            reason = " ".join(dict.fromkeys(said.reason for said in each if said.rule == DELETION))
        if uncovered and first.rule == self.otherwise.rule:
            reason = f"Not covered by a rule: {_list_commands(uncovered)}. {reason}"
        return replace(first, reason=reason, parts=tuple(parts), uncovered=uncovered)

    def _uncovered_of(
        self, line: PlainLine, each: Sequence[Decision]
    ) -> tuple[tuple[Word, ...], ...]:
        """Returns the commands that a profile asks about because no rule matches."""
        asks = self.otherwise.verdict is Verdict.ASK and self.otherwise.source != SETTINGS
        return tuple(
            _all_words(run)
            for run, said in zip(line.runs, each, strict=True)
            if asks and said is self.otherwise
        )

    def _judge_whole(self, command: ShellCommand) -> Decision | None:
        """Returns the decision of rules that match several commands of the line."""
        everything = [found for part in command.found for found in part]
        for rules, verdict, says in (
            (self.deny, Verdict.DENY, "denies"),
            (self.ask, Verdict.ASK, "asks about"),
        ):
            for rule, pattern in rules.several:
                if all(_surest(each, everything) for each in pattern.commands):
                    sure = all(_surest(each, everything) is Match.YES for each in pattern.commands)
                    what = f"{says if sure else 'may deny'} the line"
                    decided = verdict if sure else Verdict.ASK
                    return Decision.by_rule(decided, rule.rule.text, what, SETTINGS)
        return None

    def _judge_unplain(self, command: ShellCommand) -> Decision:
        hit = self._hit(command, 0)
        if hit is not None:
            return hit
        uncovered = self._uncovered(command, 0)
        if uncovered is self.otherwise and uncovered.verdict is Verdict.ASK:
            why = f"No rule about commands can allow it: {command.reason}."
            return replace(self.otherwise, reason=f"{self.otherwise.reason} {why}")
        return uncovered

    def _judge_part(self, command: ShellCommand, part: int) -> Decision:
        hit = self._hit(command, part)
        if hit is not None and hit.verdict is Verdict.DENY:
            return hit
        granted = self._permitted(command, part, self.grants)
        if hit is not None:
            return hit if granted is None else _allowed(granted, GRANT)
        permitted = self._permitted(command, part, self.allow)
        if permitted is not None:
            return _allowed(permitted, SETTINGS)
        if self._needs_no_rule(command, part):
            name = command.plain.commands[part][0].text if command.plain else ""
            return Decision(Verdict.ALLOW, name or "", BUILTIN, f"{name} changes nothing else.")
        if self.otherwise.verdict is Verdict.DENY:  # grants never override a denial
            return self.otherwise
        together = granted or self._permitted(command, part, self.allow + self.grants)
        return self._uncovered(command, part) if together is None else _allowed(together, GRANT)

    def _uncovered(self, command: ShellCommand, part: int) -> Decision:
        """Returns the decision on a part that no rule matches."""
        if not self.asks_to_delete or self.otherwise.verdict is Verdict.DENY:
            return self.otherwise
        deletions = Deletions.of(command, self.files.cwd, self.look)
        deletes = deletions.say(command.found[part]) or deletions.hidden(command, part)
        if not deletes:
            return self.otherwise
        return Decision(Verdict.ASK, DELETION, self.otherwise.source, deletes)

    def _needs_no_rule(self, command: ShellCommand, part: int) -> bool:
        """Returns whether a part of a plain line is harmless, if other parts may be allowed."""
        if command.plain is None or self.otherwise.verdict is Verdict.ALLOW or not self.is_free:
            return False
        if self.otherwise.verdict is Verdict.DENY and not self.allow:
            return False
        run = command.plain.runs[part]
        assigned = (*self.variables, *run.assigned)
        return len(harmless_variables(assigned)) == len(assigned) and is_harmless(
            run, self.files.is_beneath
        )

    def _judge_opened(self, opened: Opened) -> Decision:
        """Judges a redirection like a call of a file tool, as far as the line is confined."""
        said = self.files.decide(opened)
        why = said if isinstance(said, str) else "which is not confined"
        if isinstance(said, Decision):
            is_ruled = said.source == SETTINGS and said.verdict is not Verdict.ALLOW
            is_held = said.verdict is not Verdict.ALLOW or (self.is_free and self.is_confined)
            if is_ruled or (is_held and self.otherwise.verdict is not Verdict.ALLOW):
                return said
        if self.otherwise.verdict is not Verdict.ASK:
            return self.otherwise
        return replace(
            self.otherwise, reason=f"{self.otherwise.reason} It {_opening(opened)}, {why}."
        )

    def _hit(self, command: ShellCommand, part: int) -> Decision | None:
        """Returns the decision of deny and ask rules on a part; None if none matches."""
        doubt: Decision | None = None
        for rules, verdict in ((self.deny, Verdict.DENY), (self.ask, Verdict.ASK)):
            for rule, wanted in rules.single.about(command.names[part]):
                for found in command.found[part]:
                    match = _alike(wanted, found)
                    if match is Match.YES:
                        says = "denies" if verdict is Verdict.DENY else "asks about"
                        what = f"{says} {clip_line(_line(found.words), SHOWN)!r}"
                        return Decision.by_rule(verdict, rule.rule.text, what, SETTINGS)
                    if match is Match.MAYBE and doubt is None:
                        doubt = _doubt(rule, f"{_line(found.words)!r} may be what it means")
                if doubt is None:
                    doubt = self._unsure(command, part, rule, wanted)
        return doubt

    def _unsure(
        self, command: ShellCommand, part: int, rule: Fitted, wanted: CommandPattern
    ) -> Decision | None:
        """Returns a doubt if a part runs something that cannot be seen."""
        if command.unseen[part]:
            return _doubt(rule, command.unseen[part])
        name = wanted.words[0]
        if name is not None and command.names[part] is None and command.mentions(name.text):
            why = command.reason or "programs may run what it hands to them"
            return _doubt(rule, f"{name.text} appears in it, and {why}")
        return None

    def _permitted(self, command: ShellCommand, part: int, rules: CommandRules) -> Fitted | None:
        """Returns the rule that allows a part of a plain line, if any."""
        if command.plain is None:
            return None
        run = command.plain.runs[part]
        for rule, single in rules.single.about((base_name(run.words[0].text or ""),)):
            if self._fits(single, run, rules):
                return rule
        for rule, pattern in rules.several:
            if pattern.operators == command.plain.operators and all(
                self._fits(each, given, rules)
                for each, given in zip(pattern.commands, command.plain.runs, strict=True)
            ):
                return rule
        return None

    def _fits(self, pattern: CommandPattern, run: Run, rules: CommandRules) -> bool:
        """Returns whether a rule allows a command with its variables."""
        assigned = (*self.variables, *run.assigned)
        if assigned or pattern.assigned:
            given = [f"{name}={value}" for name, value in assigned]
            if not pattern.names(given, harmless_variables(assigned)):
                return False
        return _permits(pattern, run.words, rules)


def _permits(pattern: CommandPattern, words: Sequence[Word], rules: CommandRules) -> bool:
    """Returns whether a rule allows a command and everything the command runs in turn."""
    if not pattern.matches(words):
        return False
    for inner in inner_commands(words):
        if not inner.is_certain:
            continue
        if pattern.fixed > inner.at and pattern.fixed:
            continue
        if (
            not pattern.fixed
            or inner.unseen
            or not _permits_inner(inner.words, inner.script, rules)
        ):
            return False
    return True


def _permits_inner(words: Sequence[Word], script: str | None, rules: CommandRules) -> bool:
    commands: Sequence[Sequence[Word]] = [words]
    if script is not None:
        plain = ShellCommand.parse(script).plain
        if plain is None or not plain.only_runs:
            return False
        commands = plain.commands
    return all(
        each
        and any(
            _permits(pattern, each, rules)
            for _, pattern in rules.single.about((base_name(each[0].text or ""),))
        )
        for each in commands
    )


def _alike(wanted: CommandPattern, found: Found) -> Match:
    if found.pieces and wanted.name and found.may_run(wanted.name, wanted.needed):
        least = Match.MAYBE
    else:
        least = Match.NO
    if found.texts is not None and not wanted.needed <= found.texts:
        return least
    match = match_command(wanted, found.words)
    return max(least, min(match, Match.YES if found.is_certain else Match.MAYBE))


def _surest(wanted: CommandPattern, everything: Sequence[Found]) -> Match:
    return max((_alike(wanted, found) for found in everything), default=Match.NO)


def _doubt(rule: Fitted, why: str) -> Decision:
    what = f"cannot be ruled out: {why}"
    return Decision.by_rule(Verdict.ASK, rule.rule.text, what, SETTINGS)


def _allowed(rule: Fitted, source: str) -> Decision:
    return Decision.by_rule(Verdict.ALLOW, rule.rule.text, "allows it", source)


def _list_commands(commands: Sequence[Sequence[Word]]) -> str:
    """Lists the first few commands in backquotes."""
    lines = dict.fromkeys(clip_line(_line(words), SHOWN).replace("`", "'") for words in commands)
    named = [f"`{line}`" for line in lines]
    more = len(named) - MOST_NAMED
    return ", ".join(named[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _all_words(run: Run) -> tuple[Word, ...]:
    """Returns the variables and words of a command."""
    return (*(Word(f"{name}={value}") for name, value in run.assigned), *run.words)


def _line(words: Sequence[Word]) -> str:
    return " ".join("…" if word.text is None else word.text for word in words)


def _opening(opened: Opened) -> str:
    path = "…" if opened.path is None else clip_line(opened.path, SHOWN)
    return f"{'writes' if opened.writes else 'reads'} {path}"
