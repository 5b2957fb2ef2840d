"""Asks the person at the keyboard about a call that they made themselves."""

from __future__ import annotations

from collections.abc import Sequence

import anyio.to_thread
import typer

from server.cli.terminal.screen import forget_typed, wrapped
from server.mcp.asking.elicitation import asking_text, choices_of
from tools.core.client import Consent, Question

__all__ = ["TerminalApprover"]


class TerminalApprover:
    """Asks on the terminal."""

    tickets: Sequence[str] = ()

    def keep(self, ticket: str) -> bool:  # noqa: ARG002  # one call
        """The call does not come again."""
        return False

    async def ask(self, question: Question, ticket: str) -> Consent:  # noqa: ARG002  # one at a time
        """What the person says."""
        return await anyio.to_thread.run_sync(_ask, question, abandon_on_cancel=True)


def _ask(question: Question) -> Consent:
    typer.echo("\n".join(map(wrapped, asking_text(question).split("\n"))), err=True)
    forget_typed()
    if question.program is None:
        return Consent.ONCE if typer.confirm("Run it?", err=True) else Consent.NO
    choices = {str(number): each for number, each in enumerate(choices_of(question).items(), 1)}
    for number, (_, text) in choices.items():
        typer.echo(f"  {number}: {text}", err=True)
    said: str = typer.prompt(f"Your answer (1 to {len(choices)})", err=True)
    consent, _ = choices.get(said.strip(), (Consent.NONE, ""))
    return consent
