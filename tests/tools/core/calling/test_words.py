from __future__ import annotations

from tools.core.calling.words import Action, Words
from tools.core.errors import ConflictError
from tools.core.result import ToolFailure

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
