"""Defines the tree of tool errors: each leaf is one `error_type` of the interface.

ToolError
├── InvalidArgumentsError    invalid_arguments
├── NotFoundError            not_found
├── UnknownToolError         unknown_tool
├── PermissionDeniedError    permission_denied
│   └── DeclinedError        permission_denied, by the user or the model
├── ApprovalRequiredError    approval_required
├── OutsideSandboxError      outside_sandbox
├── ConflictError            conflict
├── DeadlineError            timeout
├── RateLimitedError         rate_limited
├── UpstreamError            upstream_failed
├── UnavailableError         unavailable
├── ToolFailedError          tool_failed
├── InternalError            internal
└── CallFailedError          the type of the failed call

ToolDefinitionError          a function that cannot become a tool; never reaches a caller
UnsendableError              a value that JSON cannot express; reaches a caller as internal
"""

from __future__ import annotations

import logging
import secrets
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Self

from storage.errors import (
    AmbiguousNameError,
    CeilingReachedError,
    ContextNotFoundError,
    DocumentNotFoundError,
    EntityNotFoundError,
    InvalidSourceError,
    PlanConflictError,
    PlanNotFoundError,
    RelationshipNotFoundError,
    StorageError,
    UnreadableDocumentError,
)
from tools.core.unicode_safety import visible_controls

_ASK = "Ask the user to "


class Action(str):
    """A suggested action that mentions parameters or tools; as a string it uses their names.

    Args:
        sentence: A sentence with `{}` for each mention.
        mentions: The mentions: the name of a tool or a parameter, or `name=value`.
    """

    __slots__ = ("mentions", "sentence")
    sentence: str
    mentions: tuple[str, ...]

    def __new__(cls, sentence: str, *mentions: str) -> Self:
        """Formats the sentence with its mentions."""
        action = super().__new__(cls, sentence.format(*mentions))
        action.sentence, action.mentions = sentence, mentions
        return action


class Words(NamedTuple):  # zygotes load this module, but not dataclasses
    """A reader's words for commands, parameters and tools.

    Attributes:
        command: The command to type for `toolcrib`.
        typed: The command-line form of mentions; a person sees only actions whose mentions have
            one. None for a model, which uses the names.
    """

    command: str = "toolcrib"
    typed: Mapping[str, str] | None = None

    def text(self, text: str) -> str:
        """Returns a text with each command `toolcrib …` as the user types it."""
        return text.replace("`toolcrib ", f"`{self.command} ")

    def actions(self, actions: Iterable[str]) -> list[str]:
        """Returns the actions in the reader's words, without those that a person cannot take."""
        told = actions if self.typed is None else (_reword(each, self.typed) for each in actions)
        return [self.text(each) for each in told if each]


def _reword(action: str, typed: Mapping[str, str]) -> str:
    """Rewords an action for a person; returns "" if it does not apply."""
    if isinstance(action, Action):
        if not typed.keys() >= set(action.mentions):
            return ""
        action = action.sentence.format(*(typed[each] for each in action.mentions))
    asked = action.removeprefix(_ASK)
    return action if asked == action else f"{asked[0].upper()}{asked[1:]}"


__all__ = [
    "ApprovalRequiredError",
    "CallFailedError",
    "ConflictError",
    "DeadlineError",
    "DeclinedError",
    "ErrorType",
    "InternalError",
    "InvalidArgumentsError",
    "NotFoundError",
    "OutsideSandboxError",
    "PermissionDeniedError",
    "RateLimitedError",
    "ToolDefinitionError",
    "ToolError",
    "ToolFailedError",
    "UnavailableError",
    "UnknownToolError",
    "UnsendableError",
    "UpstreamError",
    "as_tool_error",
    "only_cause",
]

LONGEST_TRACE = 20_000
"""Maximum characters of a traceback that are logged, counted from its end."""

_logger = logging.getLogger("toolcrib")

ErrorType = Literal[
    "invalid_arguments",
    "not_found",
    "unknown_tool",
    "permission_denied",
    "approval_required",
    "outside_sandbox",
    "conflict",
    "timeout",
    "rate_limited",
    "upstream_failed",
    "unavailable",
    "tool_failed",
    "internal",
]


class ToolError(Exception):
    """A failure that is part of a tool's interface.

    Attributes:
        message: What was wrong, with the value.
        suggestions: Values or names that would have worked.
        next_actions: What to do now, one sentence each, reworded by `Words`: a command for the user
            is written as `toolcrib …` in backticks, and a sentence that mentions parameters or
            tools is an `Action`.
    """

    error_type: ErrorType = "internal"

    def __init__(
        self, message: str, *, suggestions: Sequence[str] = (), next_actions: Sequence[str] = ()
    ) -> None:
        super().__init__(message)
        self.message = message
        self.suggestions = tuple(suggestions)
        self.next_actions = tuple(next_actions)


class InvalidArgumentsError(ToolError):
    """The arguments do not match the schema, or contradict each other."""

    error_type = "invalid_arguments"


class NotFoundError(ToolError):
    """The requested thing does not exist."""

    error_type = "not_found"


class UnknownToolError(ToolError):
    """No tool has that name or alias."""

    error_type = "unknown_tool"


class PermissionDeniedError(ToolError):
    """The policy or the operating system refuses."""

    error_type = "permission_denied"


class DeclinedError(PermissionDeniedError):
    """The user or model that a function asked gave no answer.

    Attributes:
        dismissed: Whether the user closed the question without deciding.
    """

    def __init__(
        self, message: str, *, dismissed: bool = False, next_actions: Sequence[str] = ()
    ) -> None:
        super().__init__(message, next_actions=next_actions)
        self.dismissed = dismissed


class ApprovalRequiredError(ToolError):
    """A user must approve first."""

    error_type = "approval_required"


class OutsideSandboxError(ToolError):
    """The path leads out of the root."""

    error_type = "outside_sandbox"


class ConflictError(ToolError):
    """The state is not what the caller expected."""

    error_type = "conflict"


class DeadlineError(ToolError):
    """The call took longer than its deadline."""

    error_type = "timeout"


class RateLimitedError(ToolError):
    """Too many calls; wait before the next."""

    error_type = "rate_limited"


class UpstreamError(ToolError):
    """Another server failed."""

    error_type = "upstream_failed"


class UnavailableError(ToolError):
    """A part that this call needs is currently unavailable."""

    error_type = "unavailable"


class ToolFailedError(ToolError):
    """The tool's own code failed, not ours: its author's exception, or its result."""

    error_type = "tool_failed"


class InternalError(ToolError):
    """A defect of Toolcrib; the log has the details."""

    error_type = "internal"


class CallFailedError(ToolError):
    """A call that a function made failed.

    Args:
        failure: Its failure: a ToolFailure as JSON.
    """

    def __init__(self, tool: str, failure: Mapping[str, Any]) -> None:
        super().__init__(
            f"{tool} failed: {failure['message']}",
            suggestions=failure["suggestions"],
            next_actions=failure["next_actions"],
        )
        self.error_type = failure["error_type"]
        self.tool = tool


class ToolDefinitionError(TypeError):
    """A function cannot become a tool; the message says what to change."""


class UnsendableError(ValueError):
    """JSON cannot express a value; the message names it, as "a … that …"."""


STORAGE_FAILURES: Mapping[type[StorageError], type[ToolError]] = {
    AmbiguousNameError: InvalidArgumentsError,
    CeilingReachedError: PermissionDeniedError,
    ContextNotFoundError: NotFoundError,
    DocumentNotFoundError: NotFoundError,
    EntityNotFoundError: NotFoundError,
    RelationshipNotFoundError: NotFoundError,
    PlanNotFoundError: NotFoundError,
    PlanConflictError: ConflictError,
    InvalidSourceError: InvalidArgumentsError,
    UnreadableDocumentError: InvalidArgumentsError,
    StorageError: UnavailableError,
}
"""The tool error for each storage failure; an error counts as its nearest class here."""


def as_tool_error(
    error: BaseException, tool_name: str, hide: Callable[[str], str] = str
) -> ToolError:
    """Converts an exception to a ToolError.

    A ToolError is returned as it is, and a StorageError is translated. Any other becomes an
    InternalError with an incident number, under which the traceback is logged. The traceback of an
    author's failing code is logged as a warning.

        hide: Removes the call's secrets from the log.
    """
    cause = only_cause(error)
    if isinstance(cause, ToolFailedError | InternalError) and cause.__cause__ is not None:
        _logger.warning("%s failed:\n%s", tool_name, hide(_trace(cause.__cause__)))
    if isinstance(cause, ToolError):
        return cause
    if isinstance(cause, StorageError):
        return _from_storage(cause)
    return _incident(error, tool_name, hide)


def only_cause(error: BaseException) -> BaseException:
    """Returns the single exception inside groups of one, in which task groups wrap a failure."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _from_storage(error: StorageError) -> ToolError:
    nearest = next(kind for kind in type(error).__mro__ if kind in STORAGE_FAILURES)
    return STORAGE_FAILURES[nearest](
        error.message, suggestions=error.candidates, next_actions=error.suggestions
    )


def _trace(error: BaseException) -> str:
    """Returns the traceback, shortened, since an exception's text may have any length."""
    text = "".join(traceback.format_exception(error)).rstrip()
    return visible_controls(text if len(text) <= LONGEST_TRACE else f"…{text[-LONGEST_TRACE:]}")


def _incident(
    error: BaseException, tool_name: str, hide: Callable[[str], str] = str
) -> InternalError:
    number = secrets.token_hex(4)
    _logger.error("Incident %s: %s crashed\n%s", number, tool_name, hide(_trace(error)))
    return InternalError(
        f"{tool_name} failed internally; the arguments were not the cause (incident {number}).",
        next_actions=[
            f"Try once more; if it fails again, look for incident {number} in the server's log."
        ],
    )
