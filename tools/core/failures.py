"""From whatever a tool raised to the one failure that the caller is told."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping

from storage.errors import (
    AmbiguousNameError,
    ContextNotFoundError,
    DocumentNotFoundError,
    EntityNotFoundError,
    InvalidSourceError,
    RelationshipNotFoundError,
    StorageError,
    UnreadableDocumentError,
)
from tools.core.errors import (
    InternalError,
    InvalidArgumentsError,
    NotFoundError,
    ToolError,
    UnavailableError,
)

__all__ = ["as_tool_error", "only_cause"]

logger = logging.getLogger("toolcrib")

STORAGE_FAILURES: Mapping[type[StorageError], type[ToolError]] = {
    AmbiguousNameError: InvalidArgumentsError,
    ContextNotFoundError: NotFoundError,
    DocumentNotFoundError: NotFoundError,
    EntityNotFoundError: NotFoundError,
    RelationshipNotFoundError: NotFoundError,
    InvalidSourceError: InvalidArgumentsError,
    UnreadableDocumentError: InvalidArgumentsError,
    StorageError: UnavailableError,
}
"""What each failure of storage means to a caller; an error counts as its nearest class here."""


def as_tool_error(error: BaseException, tool_name: str) -> ToolError:
    """The failure in the tool tree that an exception stands for.

    Args:
        error: What the call raised.
        tool_name: The called tool, for the log.

    Returns:
        A ToolError as it is, a StorageError translated, and anything else as an InternalError that
        tells the caller an incident number; the log has the traceback under that number.
    """
    cause = only_cause(error)
    if isinstance(cause, ToolError):
        return cause
    if isinstance(cause, StorageError):
        return _from_storage(cause)
    return _incident(error, tool_name)


def only_cause(error: BaseException) -> BaseException:
    """The single exception inside groups of one, which task groups make of a plain failure."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _from_storage(error: StorageError) -> ToolError:
    nearest = next(kind for kind in type(error).__mro__ if kind in STORAGE_FAILURES)
    return STORAGE_FAILURES[nearest](
        error.message, suggestions=error.candidates, next_actions=error.suggestions
    )


def _incident(error: BaseException, tool_name: str) -> InternalError:
    number = secrets.token_hex(4)
    logger.error("Incident %s: %s crashed", number, tool_name, exc_info=error)
    return InternalError(
        f"{tool_name} failed inside, through no fault of the arguments (incident {number}).",
        next_actions=[
            f"Try once more; if it fails again, look for incident {number} in the server's log."
        ],
    )
