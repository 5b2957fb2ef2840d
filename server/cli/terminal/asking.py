"""Asks the person at the keyboard about a call that they made themselves."""

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
        """The call does not come again."""
        return False

    async def ask(self, question: Question, ticket: str) -> Consent:  # noqa: ARG002  # one at a time
        """What the person says."""
        echo("\n".join(map(wrapped, asking_text(question).split("\n"))), err=True)
        forget_typed()
        if question.program is None:
            said = await _typed("Run it? [y/N]")
            return Consent.ONCE if said.lower() in YES else Consent.NO
        choices = {str(number): each for number, each in enumerate(choices_of(question).items(), 1)}
        for number, (_, text) in choices.items():
            echo(f"  {number}: {text}", err=True)
        said = await _typed(f"Your answer (1 to {len(choices)})")
        consent, _ = choices.get(said, (Consent.NONE, ""))
        return consent


async def _typed(prompt: str) -> str:
    """The line that is typed; no thread waits for it, which a Ctrl-C could not end."""
    echo(f"{prompt}: ", nl=False, err=True)
    await anyio.wait_readable(sys.stdin)
    return sys.stdin.readline().strip()
