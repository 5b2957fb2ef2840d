import logging

import pytest

from storage.errors import (
    DocumentNotFoundError,
    InvalidSourceError,
    SchemaVersionError,
    StorageError,
    StorageUnavailableError,
    UnreadableDocumentError,
)
from tools.core.errors import Action, ConflictError, NotFoundError, Words, as_tool_error
from tools.core.result import ToolFailure


@pytest.mark.parametrize(
    ("raised", "error_type"),
    [
        (DocumentNotFoundError, "not_found"),
        (InvalidSourceError, "invalid_arguments"),
        (UnreadableDocumentError, "invalid_arguments"),
        (SchemaVersionError, "unavailable"),
        (StorageUnavailableError, "unavailable"),
    ],
)
def test_a_storage_failure_keeps_its_message_and_its_advice(
    raised: type[StorageError], error_type: str
) -> None:
    failure = as_tool_error(raised("No 'a.md'.", suggestions=["Add it."]), "get_document")
    assert failure.error_type == error_type
    assert failure.message == "No 'a.md'."
    assert failure.next_actions == ("Add it.",)


def test_a_failure_of_the_tree_stays_itself() -> None:
    error = NotFoundError("No 'a'.")
    assert as_tool_error(error, "get_document") is error


def test_a_failure_alone_in_task_groups_is_told_as_itself() -> None:
    error = NotFoundError("No 'a'.")
    assert as_tool_error(ExceptionGroup("", [ExceptionGroup("", [error])]), "any") is error


def test_a_crash_is_told_by_its_number_and_logged_under_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.ERROR, logger="toolcrib")
    failure = as_tool_error(ValueError("password=hunter2"), "get_document")
    number = failure.message.rpartition("incident ")[2].rstrip(").")
    assert failure.error_type == "internal"
    assert "hunter2" not in f"{failure.message} {failure.next_actions}"
    assert f"Incident {number}: get_document" in caplog.text
    assert "hunter2" in caplog.text


def test_several_failures_at_once_are_a_crash() -> None:
    several = ExceptionGroup("", [NotFoundError("a"), NotFoundError("b")])
    assert as_tool_error(several, "get_document").error_type == "internal"


ACTIONS = (
    Action("Give {} to replace it.", "overwrite=true"),
    Action("Look at it with {}, or give another {}.", "read_file", "path"),
    "Ask the user to run `toolcrib doctor`.",
)


def test_a_model_is_told_parameters_and_tools_by_their_names() -> None:
    failure = ToolFailure.of(ConflictError("It is there.", next_actions=ACTIONS), Words("./crib"))
    assert failure.next_actions == [
        "Give overwrite=true to replace it.",
        "Look at it with read_file, or give another path.",
        "Ask the user to run `./crib doctor`.",
    ]


def test_a_person_is_told_what_he_types_and_nothing_that_he_cannot() -> None:
    words = Words(typed={"overwrite=true": "--overwrite", "path": "FILE"})
    assert words.actions(ACTIONS) == ["Give --overwrite to replace it.", "Run `toolcrib doctor`."]


def test_braces_of_what_is_mentioned_stay() -> None:
    action = Action("Give {}.", "a{0}")
    assert action == "Give a{0}."
    assert Words(typed={"a{0}": "{b}"}).actions([action]) == ["Give {b}."]
