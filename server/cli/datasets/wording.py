"""What tools say of their parameters and of each other, in the words of these commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from server.cli.invocation import invocation

if TYPE_CHECKING:
    from tools.core.result import ToolResult

__all__ = ["text_of", "worded"]

_OPTIONS = {
    "output_path": "--output",
    "text_key": "--text-key",
    "overwrite=true": "--overwrite",
    "dataset_source": "FILE",
}
_PARAMETER = re.compile(rf"(?<![\w/.-])({'|'.join(_OPTIONS)})(?![\w/.-]*[\w/-])")
"""One of them, that is no part of a path."""

_ACTIONS = {
    r"Call list_directory\b.*": "See with `ls` what is there.",
    r"with inspect_dataset\b(, and at the operator.*(?=\.))?": "with `toolcrib data inspect`",
    r"Give it more timeout_seconds, or fewer rows": "Give it fewer rows",
    r"Set export_shard_size, so .*(?=\.)": "Split it first, with `toolcrib data split`",
    r"Correct what is listed and call \w+ again": "Correct what is listed",
    r"Ask the user to run (`[^`]+`)": r"Run \1",
}
"""Where commands have no such option, or another command does what the tool does."""

_ELSEWHERE = "Give another output_path, or "
"""What only a command with `--output` can be told."""


def text_of(result: ToolResult) -> str:
    """Returns what is printed of a result of a tool."""
    if not result.is_error:
        return result.text
    from tools.core.result import ToolFailure

    failure = ToolFailure.model_validate(result.structured)
    actions = [_action(each) for each in failure.next_actions]
    changed = {"message": _options(failure.message), "next_actions": actions}
    return failure.model_copy(update=changed).to_text()


@contextmanager
def worded() -> Iterator[None]:
    """Has the failures of `split`, which shares code with tools, speak of its own options.

    Raises:
        ToolError: The same, with other things to do next.
    """
    from tools.core.errors import ToolError

    try:
        yield
    except ToolError as error:
        actions = (each.replace(_ELSEWHERE, "Give ") for each in error.next_actions)
        error.next_actions = tuple(map(_action, actions))
        raise


def _action(text: str) -> str:
    from tools.core.errors import as_typed

    for pattern, words in _ACTIONS.items():
        text = re.sub(pattern, words, text)
    return as_typed(_options(text), invocation())


def _options(text: str) -> str:
    return _PARAMETER.sub(lambda found: _OPTIONS[found[1]], text)
