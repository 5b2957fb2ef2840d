"""Prints failures on the command line: the message on stderr, exit code 1, no traceback."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from server.cli.invocation import invocation
from server.cli.terminal.screen import echo
from server.settings import SettingsError
from storage.errors import StorageError
from tools.core.errors import ToolError, Words, only_cause

_KNOWN = (SettingsError, StorageError, ToolError)


@contextmanager
def reported() -> Iterator[None]:
    """Prints a failure that the user can act on to stderr.

    Raises:
        SystemExit: With 1, instead of a SettingsError, a StorageError or a ToolError; also if it,
         or a SystemExit, is the only error in a task group's exception group.
    """
    try:
        yield
    except (Exception, BaseExceptionGroup) as error:
        cause = only_cause(error)
        if isinstance(cause, SystemExit):  # rich exits so when the pipe closes: `| head`
            raise cause from None
        if not isinstance(cause, _KNOWN):
            raise
        words = Words(invocation(), typed={})
        echo("\n".join(_lines(cause, words)), err=True)
        sys.exit(1)


def _lines(error: SettingsError | StorageError | ToolError, words: Words) -> Iterator[str]:
    yield words.text(f"Error: {error.message}")
    match error:
        case StorageError():
            yield from map(words.text, error.suggestions)
        case ToolError():
            if error.suggestions:
                yield "Did you mean: " + ", ".join(error.suggestions)
            yield from words.actions(error.next_actions)
