"""`toolcrib approvals`: shows the user what agents ask for, and records the answers."""

from __future__ import annotations

import sys
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from server.cli.invocation import invocation
from server.cli.terminal.options import ConfigOption, DataDirOption
from server.cli.terminal.screen import check_person, echo, fail, forget_typed, wrapped
from server.mcp.visible import visible, visible_lines
from server.settings_file import SettingsError
from tools.core.client import Consent

if TYPE_CHECKING:
    from server.settings import Settings
    from storage.approvals import Approval, ApprovalStore, ProgramOffer

POLL_SECONDS = 0.5
LETTERS = {
    "y": "[y]es once",
    "w": "similar calls for a [w]hile",
    "a": "[a]lways",
    "b": "[b] always",
    "p": "for this [p]rogram",
    "t": "the [t]ool for it",
    "n": "[n]o",
    "d": "[d]eny the tool to it",
    "s": "[s]kip",
}
ASKED = {
    Consent.ONCE: "Approve it, once?",
    Consent.FOR_A_WHILE: "Approve similar calls for a while?",
    Consent.ALWAYS: "Always approve what (a) allows?",
}
SHOWN_CHARACTERS = 100
"""Length of a question in a list."""


class Action(StrEnum):
    """The action of the command."""

    WATCH = "watch"
    LIST = "list"
    SHOW = "show"
    APPROVE = "approve"
    DENY = "deny"
    REVOKE = "revoke"


def approvals(  # noqa: PLR0913, PLR0917  # one parameter an option
    action: Annotated[
        Action,
        typer.Argument(
            help="watch: answer questions as they come; list: questions and grants; show, approve "
            "or deny one; revoke a grant."
        ),
    ] = Action.WATCH,
    ticket: Annotated[
        str, typer.Argument(help="Id of the question or grant, or its first characters.")
    ] = "",
    for_a_while: Annotated[
        bool, typer.Option("--for-a-while", help="Also approve similar calls for some time.")
    ] = False,
    always: Annotated[
        bool,
        typer.Option("--always", help="Also write the rule that is shown into the settings file."),
    ] = False,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """See what agents ask to do, and approve or deny it."""
    from server.cli.opened import record
    from server.settings.sources import load
    from storage.approvals import ApprovalStore

    settings = load({"data_dir": data_dir}, config_file=config)
    with record(data_dir, config) as database:
        questions = _Questions(ApprovalStore(database), settings)
        match action:
            case Action.WATCH if sys.stdin.isatty():
                questions.watch()
            case Action.WATCH | Action.LIST:
                _list(questions.store)
            case Action.SHOW:
                echo(questions.format(questions.find(ticket)))
            case Action.APPROVE:
                check_person("Approving calls")
                consent = Consent.FOR_A_WHILE if for_a_while else Consent.ONCE
                questions.approve(questions.find(ticket), Consent.ALWAYS if always else consent)
            case Action.DENY:
                _must(questions.answer(questions.find(ticket), Consent.NO))
            case Action.REVOKE:
                _revoke(questions.store, ticket)


class _Questions:
    """The questions of agents, and the settings that answers may change."""

    def __init__(self, store: ApprovalStore, settings: Settings) -> None:
        self.store = store
        self._settings = settings

    def watch(self) -> None:
        """Shows each question as it arrives, until Ctrl-C."""
        echo("Questions from agents appear here. Press Ctrl-C to stop.")
        with _present(self.store):
            skipped: set[str] = set()
            while True:
                waiting = [each for each in self.store.waiting() if each.ticket not in skipped]
                if not waiting:
                    time.sleep(POLL_SECONDS)
                    continue
                question = waiting[0]
                echo("\n" + self.format(question))
                choice = self._choose(question)
                if choice is Consent.NONE:
                    skipped.add(question.ticket)
                else:
                    self.answer(question, choice)

    def find(self, prefix: str) -> Approval:
        """Returns the question that a ticket, or its first characters, names."""
        found = self.store.find(prefix) if prefix else []
        if len(found) != 1:
            problem = "is not a question" if not found else f"could be {len(found)} questions"
            fail(f"{prefix!r} {problem}; see `{invocation()} approvals list`.")
        return found[0]

    def approve(self, question: Approval, consent: Consent) -> None:
        """Shows first what would be approved: an agent may have described it differently."""
        if consent not in self._choices(question).values():
            option = f"--{consent.replace('_', '-')}"
            fail(f"No rule is offered for this call; approve it without {option}.")
        echo(self.format(question))
        forget_typed()
        typer.confirm(ASKED[consent], abort=True)
        _must(self.answer(question, consent))

    def answer(self, question: Approval, consent: Consent) -> bool:
        """Answers a question; returns whether the whole answer took effect."""
        from server.mcp.approvals import ALWAYS, COMMAND_LINE, REFUSALS, TO_PROGRAMS, answer_fields

        said = answer_fields(consent, question.asked.program)
        if not self.store.answer(question.ticket, by=COMMAND_LINE, **said):
            echo(f"{question.ticket[:8]} was already answered, or has expired.", err=True)
            return False
        if consent in ALWAYS:
            return self._allow_always(question, self._offers(question)[ALWAYS.index(consent)])
        if consent is Consent.FOR_A_WHILE:
            seconds = self._settings.approvals.grant_seconds
            self.store.grant(question.asked, by=COMMAND_LINE, seconds=seconds)
            alone = f", in {visible(question.asked.client)} alone" if question.asked.client else ""
            rule = visible(question.asked.rule)
            echo(wrapped(f"approved, and {rule} for {seconds / 60:.0f} minutes{alone}"))
        elif consent in REFUSALS:
            echo("denied, to the rest of the program too" if consent in TO_PROGRAMS else "denied")
        else:
            echo(f"approved, for {'this program' if consent in TO_PROGRAMS else 'one call'}")
        return True

    def format(self, question: Approval) -> str:
        """Returns what the agent wants, and the rules that can be written."""
        asked = question.asked
        who = visible(asked.client) or "an agent"
        lines = [
            f"{question.ticket[:8]}  {who} ({visible(asked.identity.user_id)}) wants {asked.tool}",
            f"  in {visible(asked.root)}",
            *(f"    {line}" for line in visible_lines(asked.shown).split("\n")),
            f"  asked because: {visible(asked.reason)}",
        ]
        if (program := asked.program) is not None:
            lines.append(
                f"  called by {visible(program.name)}, which may make {program.more} more calls"
            )
            for letter in _program_choices(program):
                what, rule = (
                    ("these calls", program.same) if letter == "p" else ("the tool", program.whole)
                )
                lines.append(f"  {what} ({letter}): {visible(rule)}, {program.more} more at most")
        if asked.rule:
            lines.append(f"  similar calls: {visible(asked.rule)}")
        for letter, offer in zip("ab", self._offers(question), strict=False):
            lines.append(f"  always ({letter}): {visible(' and '.join(offer))}")
        return "\n".join(map(wrapped, lines))

    def _choose(self, question: Approval) -> Consent:
        choices = self._choices(question)
        shown = ", ".join(LETTERS[letter] for letter in choices)
        which = f"{question.ticket[:8]} {question.asked.tool}"
        forget_typed()
        while True:
            said = typer.prompt(f"{which}: {shown}", default="s").strip().lower()[:1]
            if said in choices:
                return choices[said]

    def _choices(self, question: Approval) -> dict[str, Consent]:
        """Maps letters to the possible answers."""
        offers, program = self._offers(question), question.asked.program
        wider = (("a", Consent.ALWAYS), ("b", Consent.ALWAYS_WIDER))
        return {
            "y": Consent.ONCE,
            **({"w": Consent.FOR_A_WHILE} if question.asked.rule else {}),
            **dict(wider[: len(offers)]),
            **_program_choices(program),
            "n": Consent.NO,
            **({"d": Consent.NO_MORE} if program else {}),
            "s": Consent.NONE,
        }

    def _offers(self, question: Approval) -> Sequence[tuple[str, ...]]:
        """Returns the rules that may be written to the settings; none without effect there."""
        from server.composition.policy import counting_file

        return question.asked.offers if counting_file(self._asker_settings(question)) else ()

    def _asker_settings(self, question: Approval) -> Settings:
        """Returns the settings with the root of the asking server, where its agents work."""
        return self._settings.model_copy(update={"root": Path(question.asked.root)})

    def _allow_always(self, question: Approval, rules: tuple[str, ...]) -> bool:
        from server.composition.policy import allow_always

        settings = self._asker_settings(question)
        try:
            allow_always(settings, rules)
        except (SettingsError, OSError, ValueError) as error:
            echo(f"approved, for one call only: {error}", err=True)
            return False
        shown = visible(" and ".join(rules))
        echo(f"approved, and {shown} from now on, in {settings.config_file}")
        return True


def _must(succeeded: bool) -> None:
    if not succeeded:
        raise typer.Exit(1)


@contextmanager
def _present(store: ApprovalStore) -> Iterator[None]:
    """Marks this process as watching, so that calls wait for an answer."""
    watcher, gone = uuid.uuid4().hex, threading.Event()

    def say() -> None:
        while not gone.wait(1.0):
            store.watch(watcher)

    store.watch(watcher)
    speaker = threading.Thread(target=say, daemon=True)
    speaker.start()
    try:
        yield
    finally:
        gone.set()
        speaker.join()
        store.leave(watcher)


def _program_choices(offer: ProgramOffer | None) -> dict[str, Consent]:
    """Maps letters to what can be allowed to the calling program."""
    if offer is None or not offer.more:
        return {}
    rules = {"p": (offer.same, Consent.FOR_PROGRAM), "t": (offer.whole, Consent.FOR_PROGRAM_WIDER)}
    return {letter: consent for letter, (rule, consent) in rules.items() if rule}


def _revoke(store: ApprovalStore, name: str) -> None:
    if not name:
        fail(f"Name the grant: see `{invocation()} approvals list`.")
    count = store.revoke(name)
    echo(f"{count} revoked")
    _must(bool(count))


def _list(store: ApprovalStore) -> None:
    waiting, grants = store.waiting(), store.grants()
    now = time.time()
    for each in waiting:
        shown = visible(" ".join(each.asked.shown.split()))[:SHOWN_CHARACTERS]
        left = max(each.expires - now, 0)
        echo(wrapped(f"{each.ticket[:8]}  {each.asked.tool}  {shown}  ({left:.0f} s left)"))
    for grant in grants:
        left = max(grant.expires - now, 0) / 60
        rule = visible(grant.rule) + (f" in {visible(grant.client)}" if grant.client else "")
        echo(wrapped(f"{grant.grant_id[:8]}  allowed: {rule}  ({left:.0f} min left)"))
    if not waiting and not grants:
        echo("No questions are waiting, and nothing is allowed for a while.")
