"""Asks the local user about a call that they made."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import anyio

from server.cli.terminal.screen import echo, forget_typed, wrapped
from server.mcp.asking.elicitation import asking_text, choices_of
from tools.core.client import Consent, Question

YES = {"y", "yes"}


class TerminalApprover:
    """Asks on the terminal."""

    tickets: Sequence[str] = ()

    def keep(self, ticket: str) -> bool:  # noqa: ARG002  # one call
        """Never keeps a ticket: the call is not retried."""
        return False

    async def ask(self, question: Question, ticket: str) -> Consent:  # noqa: ARG002  # one at a time
        """Asks and returns the user's answer."""
        echo("\n".join(map(wrapped, asking_text(question).split("\n"))), err=True)
        forget_typed()
        if question.program is None:
            said = await _read_line("Run it? [y/N]")
            return Consent.ONCE if said.lower() in YES else Consent.NO
        choices = {str(number): each for number, each in enumerate(choices_of(question).items(), 1)}
        for number, (_, text) in choices.items():
            echo(f"  {number}: {text}", err=True)
        said = await _read_line(f"Your answer (1 to {len(choices)})")
        consent, _ = choices.get(said, (Consent.NONE, ""))
        return consent


async def _read_line(prompt: str) -> str:
    """Reads a line without a thread, which Ctrl-C could not interrupt."""
    echo(f"{prompt}: ", nl=False, err=True)
    await anyio.wait_readable(sys.stdin)
    return sys.stdin.readline().strip()
