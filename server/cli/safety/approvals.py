"""`toolcrib approvals`: what agents ask, seen and answered by the person at the keyboard."""

from __future__ import annotations

import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from server.cli.invocation import invocation
from server.cli.terminal.options import ConfigOption, DataDirOption
from server.cli.terminal.screen import forget_typed, wrapped
from server.mcp.visible import visible

if TYPE_CHECKING:
    from storage.approvals import Approval, ApprovalStore

__all__ = ["Action", "approvals"]

POLL_SECONDS = 0.5
SHOWN_CHARACTERS = 100
"""Of a question in a list."""


class Action(StrEnum):
    """What is done."""

    WATCH = "watch"
    LIST = "list"
    SHOW = "show"
    APPROVE = "approve"
    DENY = "deny"
    REVOKE = "revoke"


def approvals(
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
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """See what agents ask to do, and approve or deny it."""
    with _opened(data_dir, config) as (store, seconds):
        match action:
            case Action.WATCH if sys.stdin.isatty():
                _watch(store, seconds)
            case Action.WATCH | Action.LIST:
                _list(store)
            case Action.SHOW:
                typer.echo(_whole(_named(store, ticket)))
            case Action.APPROVE:
                _check_person()
                _approve(store, _named(store, ticket), seconds, like_it=for_a_while)
            case Action.DENY:
                _must(_answer(store, _named(store, ticket), seconds, yes=False))
            case Action.REVOKE:
                _revoke(store, ticket)


@contextmanager
def _opened(data_dir: Path | None, config: Path | None) -> Iterator[tuple[ApprovalStore, float]]:
    """What is asked, and for how many seconds "a while" is."""
    from server.cli.opened import record
    from server.settings.sources import load
    from storage.approvals import ApprovalStore

    seconds = load({"data_dir": data_dir}, config_file=config).approvals.grant_seconds
    with record(data_dir, config) as database:
        yield ApprovalStore(database), seconds


def _check_person() -> None:
    """An agent's shell has no terminal; what is approved is approved by a person at one."""
    if not sys.stdin.isatty():
        typer.echo("Approvals are given by a person at a terminal, and this is not one.", err=True)
        raise typer.Exit(1)


def _approve(store: ApprovalStore, question: Approval, seconds: float, *, like_it: bool) -> None:
    """Shows what would be approved first: an agent may have said that it is something else."""
    if like_it and not question.asked.rule:
        typer.echo("No rule fits this call alone; approve it without --for-a-while.", err=True)
        raise typer.Exit(1)
    typer.echo(_whole(question))
    forget_typed()
    typer.confirm(
        "Approve similar calls for a while?" if like_it else "Approve it, once?", abort=True
    )
    _must(_answer(store, question, seconds, yes=True, like_it=like_it))


def _must(succeeded: bool) -> None:
    if not succeeded:
        raise typer.Exit(1)


def _watch(store: ApprovalStore, seconds: float) -> None:
    """Shows each question as it comes, until Ctrl-C."""
    typer.echo("Questions from agents appear here. Press Ctrl-C to stop.")
    with _present(store):
        skipped: set[str] = set()
        while True:
            waiting = [each for each in store.waiting() if each.ticket not in skipped]
            if not waiting:
                time.sleep(POLL_SECONDS)
                continue
            question = waiting[0]
            typer.echo("\n" + _whole(question))
            choice = _choice(question)
            if choice == "s":
                skipped.add(question.ticket)
            else:
                _answer(store, question, seconds, yes=choice in "yw", like_it=choice == "w")


@contextmanager
def _present(store: ApprovalStore) -> Iterator[None]:
    """Says all the while that somebody is here, so that calls wait for an answer."""
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


def _choice(question: Approval) -> str:
    """One of y, n, s and, where a rule is offered, w."""
    like_it = ", similar calls for a [w]hile" * bool(question.asked.rule)
    letters = "ynsw" if question.asked.rule else "yns"
    which = f"{question.ticket[:8]} {question.asked.tool}"
    forget_typed()
    while True:
        said = typer.prompt(f"{which}: [y]es, once{like_it}, [n]o, [s]kip", default="s")
        said = said.strip().lower()[:1]
        if said and said in letters:
            return str(said)


def _answer(
    store: ApprovalStore,
    question: Approval,
    seconds: float,
    *,
    yes: bool,
    like_it: bool = False,
) -> bool:
    """Answers a question; whether it could still be answered."""
    from server.mcp.approvals import COMMAND_LINE

    if not store.answer(question.ticket, approved=yes, by=COMMAND_LINE):
        typer.echo(f"{question.ticket[:8]} is answered already, or has expired.", err=True)
        return False
    if like_it:
        store.grant(question.asked, by=COMMAND_LINE, seconds=seconds)
        typer.echo(f"approved, and {_line(question.asked.rule)} for {seconds / 60:.0f} minutes")
    else:
        typer.echo("approved, for one call" if yes else "denied")
    return True


def _revoke(store: ApprovalStore, name: str) -> None:
    if not name:
        typer.echo(f"Name the grant: see `{invocation()} approvals list`.", err=True)
        raise typer.Exit(1)
    count = store.revoke(name)
    typer.echo(f"{count} revoked")
    if not count:
        raise typer.Exit(1)


def _list(store: ApprovalStore) -> None:
    waiting, grants = store.waiting(), store.grants()
    now = time.time()
    for each in waiting:
        shown = _line(" ".join(each.asked.shown.split()))[:SHOWN_CHARACTERS]
        left = max(each.expires - now, 0)
        line = f"{each.ticket[:8]}  {each.asked.tool}  {shown}  ({left:.0f} s left)"
        typer.echo(wrapped(line))
    for grant in grants:
        left = max(grant.expires - now, 0) / 60
        line = f"{grant.grant_id[:8]}  allowed: {_line(grant.rule)}  ({left:.0f} min left)"
        typer.echo(wrapped(line))
    if not waiting and not grants:
        typer.echo("No questions are waiting, and nothing is allowed for a while.")


def _whole(question: Approval) -> str:
    from server.mcp.visible import visible_lines

    asked = question.asked
    who = _line(asked.client) or "an agent"
    lines = [
        f"{question.ticket[:8]}  {who} ({_line(asked.identity.user_id)}) wants {asked.tool}",
        f"  in {_line(asked.root)}",
        *(f"    {line}" for line in visible_lines(asked.shown).split("\n")),
        f"  asked because: {_line(asked.reason)}",
    ]
    if asked.rule:
        lines.append(f"  similar calls: {_line(asked.rule)}")
    return "\n".join(map(wrapped, lines))


def _named(store: ApprovalStore, prefix: str) -> Approval:
    found = store.find(prefix) if prefix else []
    if len(found) == 1:
        return found[0]
    problem = "is not a question" if not found else f"could be {len(found)} questions"
    typer.echo(f"{prefix!r} {problem}; see `{invocation()} approvals list`.", err=True)
    raise typer.Exit(1)


def _line(text: str) -> str:
    return visible(text)
