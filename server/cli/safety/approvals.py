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
from server.cli.terminal.screen import echo, forget_typed, wrapped
from server.mcp.visible import visible
from server.settings_error import SettingsError
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
    with _open_store(data_dir, config) as (store, settings):
        match action:
            case Action.WATCH if sys.stdin.isatty():
                _watch(store, settings)
            case Action.WATCH | Action.LIST:
                _list(store)
            case Action.SHOW:
                echo(_format_question(_find_question(store, ticket), settings))
            case Action.APPROVE:
                _check_person()
                consent = Consent.FOR_A_WHILE if for_a_while else Consent.ONCE
                consent = Consent.ALWAYS if always else consent
                _approve(store, _find_question(store, ticket), settings, consent)
            case Action.DENY:
                _must(_answer(store, _find_question(store, ticket), settings, Consent.NO))
            case Action.REVOKE:
                _revoke(store, ticket)


@contextmanager
def _open_store(
    data_dir: Path | None, config: Path | None
) -> Iterator[tuple[ApprovalStore, Settings]]:
    """Opens the approval store and the settings."""
    from server.cli.opened import record
    from server.settings.sources import load
    from storage.approvals import ApprovalStore

    settings = load({"data_dir": data_dir}, config_file=config)
    with record(data_dir, config) as database:
        yield ApprovalStore(database), settings


def _check_person() -> None:
    """Exits unless stdin is a terminal: an agent's shell has none, and only people may approve."""
    if not sys.stdin.isatty():
        echo("Approving calls requires an interactive terminal.", err=True)
        raise typer.Exit(1)


def _approve(
    store: ApprovalStore, question: Approval, settings: Settings, consent: Consent
) -> None:
    """Shows first what would be approved: an agent may have described it differently."""
    choices = _choices(question, settings)
    if consent not in choices.values():
        option = f"--{consent.replace('_', '-')}"
        echo(f"No rule is offered for this call; approve it without {option}.", err=True)
        raise typer.Exit(1)
    echo(_format_question(question, settings))
    forget_typed()
    typer.confirm(ASKED[consent], abort=True)
    _must(_answer(store, question, settings, consent))


def _must(succeeded: bool) -> None:
    if not succeeded:
        raise typer.Exit(1)


def _watch(store: ApprovalStore, settings: Settings) -> None:
    """Shows each question as it arrives, until Ctrl-C."""
    echo("Questions from agents appear here. Press Ctrl-C to stop.")
    with _present(store):
        skipped: set[str] = set()
        while True:
            waiting = [each for each in store.waiting() if each.ticket not in skipped]
            if not waiting:
                time.sleep(POLL_SECONDS)
                continue
            question = waiting[0]
            echo("\n" + _format_question(question, settings))
            choice = _choice(question, settings)
            if choice is Consent.NONE:
                skipped.add(question.ticket)
            else:
                _answer(store, question, settings, choice)


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


def _choices(question: Approval, settings: Settings) -> dict[str, Consent]:
    """Maps letters to the possible answers."""
    offers = _offers(question, settings)
    wider = (("a", Consent.ALWAYS), ("b", Consent.ALWAYS_WIDER))
    return {
        "y": Consent.ONCE,
        **({"w": Consent.FOR_A_WHILE} if question.asked.rule else {}),
        **dict(wider[: len(offers)]),
        **_program_choices(question.asked.program),
        "n": Consent.NO,
        **({"d": Consent.NO_MORE} if question.asked.program else {}),
        "s": Consent.NONE,
    }


def _program_choices(offer: ProgramOffer | None) -> dict[str, Consent]:
    """Maps letters to what can be allowed to the calling program."""
    if offer is None or not offer.more:
        return {}
    rules = {"p": (offer.same, Consent.FOR_PROGRAM), "t": (offer.whole, Consent.FOR_PROGRAM_WIDER)}
    return {letter: consent for letter, (rule, consent) in rules.items() if rule}


def _choice(question: Approval, settings: Settings) -> Consent:
    choices = _choices(question, settings)
    shown = ", ".join(LETTERS[letter] for letter in choices)
    which = f"{question.ticket[:8]} {question.asked.tool}"
    forget_typed()
    while True:
        said = typer.prompt(f"{which}: {shown}", default="s").strip().lower()[:1]
        if said in choices:
            return choices[said]


def _offers(question: Approval, settings: Settings) -> Sequence[tuple[str, ...]]:
    """Returns the rules that may be written to the settings; none without effect there."""
    from server.composition.current_policy import counting_file

    return question.asked.offers if counting_file(_asker_settings(question, settings)) else ()


def _asker_settings(question: Approval, settings: Settings) -> Settings:
    """Returns the settings with the root of the asking server, where its agents work."""
    return settings.model_copy(update={"root": Path(question.asked.root)})


def _answer(store: ApprovalStore, question: Approval, settings: Settings, consent: Consent) -> bool:
    """Answers a question; returns whether the whole answer took effect."""
    from server.mcp.approvals import ALWAYS, COMMAND_LINE, REFUSALS, TO_PROGRAMS, answer_fields

    said = answer_fields(consent, question.asked.program)
    if not store.answer(question.ticket, by=COMMAND_LINE, **said):
        echo(f"{question.ticket[:8]} was already answered, or has expired.", err=True)
        return False
    if consent in ALWAYS:
        rules = _offers(question, settings)[ALWAYS.index(consent)]
        return _allow_always(rules, _asker_settings(question, settings))
    if consent is Consent.FOR_A_WHILE:
        seconds = settings.approvals.grant_seconds
        store.grant(question.asked, by=COMMAND_LINE, seconds=seconds)
        echo(f"approved, and {visible(question.asked.rule)} for {seconds / 60:.0f} minutes")
    elif consent in REFUSALS:
        echo("denied, to the rest of the program too" if consent in TO_PROGRAMS else "denied")
    else:
        echo(f"approved, for {'this program' if consent in TO_PROGRAMS else 'one call'}")
    return True


def _allow_always(rules: tuple[str, ...], settings: Settings) -> bool:
    from server.composition.safety import allow_always

    try:
        allow_always(settings, rules)
    except (SettingsError, OSError, ValueError) as error:
        echo(f"approved, for one call only: {error}", err=True)
        return False
    echo(f"approved, and {_rules(rules)} from now on, in {settings.config_file}")
    return True


def _revoke(store: ApprovalStore, name: str) -> None:
    if not name:
        echo(f"Name the grant: see `{invocation()} approvals list`.", err=True)
        raise typer.Exit(1)
    count = store.revoke(name)
    echo(f"{count} revoked")
    if not count:
        raise typer.Exit(1)


def _list(store: ApprovalStore) -> None:
    waiting, grants = store.waiting(), store.grants()
    now = time.time()
    for each in waiting:
        shown = visible(" ".join(each.asked.shown.split()))[:SHOWN_CHARACTERS]
        left = max(each.expires - now, 0)
        line = f"{each.ticket[:8]}  {each.asked.tool}  {shown}  ({left:.0f} s left)"
        echo(wrapped(line))
    for grant in grants:
        left = max(grant.expires - now, 0) / 60
        line = f"{grant.grant_id[:8]}  allowed: {visible(grant.rule)}  ({left:.0f} min left)"
        echo(wrapped(line))
    if not waiting and not grants:
        echo("No questions are waiting, and nothing is allowed for a while.")


def _format_question(question: Approval, settings: Settings) -> str:
    from server.mcp.visible import visible_lines

    asked = question.asked
    who = visible(asked.client) or "an agent"
    lines = [
        f"{question.ticket[:8]}  {who} ({visible(asked.identity.user_id)}) wants {asked.tool}",
        f"  in {visible(asked.root)}",
        *(f"    {line}" for line in visible_lines(asked.shown).split("\n")),
        f"  asked because: {visible(asked.reason)}",
    ]
    if asked.program is not None:
        lines += _program_lines(asked.program)
    if asked.rule:
        lines.append(f"  similar calls: {visible(asked.rule)}")
    for letter, offer in zip("ab", _offers(question, settings), strict=False):
        lines.append(f"  always ({letter}): {_rules(offer)}")
    return "\n".join(map(wrapped, lines))


def _program_lines(offer: ProgramOffer) -> list[str]:
    lines = [f"  called by {visible(offer.name)}, which may make {offer.more} more calls"]
    if "p" in _program_choices(offer):
        lines.append(f"  these calls (p): {visible(offer.same)}, {offer.more} more at most")
    if "t" in _program_choices(offer):
        lines.append(f"  the tool (t): {visible(offer.whole)}, {offer.more} more at most")
    return lines


def _find_question(store: ApprovalStore, prefix: str) -> Approval:
    found = store.find(prefix) if prefix else []
    if len(found) == 1:
        return found[0]
    problem = "is not a question" if not found else f"could be {len(found)} questions"
    echo(f"{prefix!r} {problem}; see `{invocation()} approvals list`.", err=True)
    raise typer.Exit(1)


def _rules(offer: tuple[str, ...]) -> str:
    return visible(" and ".join(offer))
