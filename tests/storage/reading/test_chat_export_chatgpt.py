from typing import Any

import pytest

from storage.reading.chat_export import read_chatgpt
from storage.reading.conversations import BRANCHES, FILES, HIDDEN, REASONING, TOOLS, Conversation

START = 1_700_000_000.0


def message(text: object, role: str = "user", **more: Any) -> dict[str, Any]:
    content = more.pop("content", {"content_type": "text", "parts": [text]})
    return {"author": {"role": role, "name": None}, "create_time": START, "content": content} | more


def chain(*messages: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    """A conversation without branches, as the export has it."""
    nodes: dict[str, Any] = {"root": {"id": "root", "message": None, "parent": None}}
    parent = "root"
    for number, each in enumerate(messages):
        nodes[str(number)] = {"id": str(number), "message": each, "parent": parent}
        parent = str(number)
    about = {"title": "Knots", "create_time": START, "conversation_id": "c-1"}
    return {**about, "mapping": nodes, "current_node": parent, **more}


def read(value: dict[str, Any]) -> Conversation:
    found = read_chatgpt(value)
    assert found is not None
    return found


def texts(found: Conversation) -> list[str]:
    return [turn.text for turn in found.turns]


def left_out(found: Conversation) -> dict[str, int]:
    return {reason: count for reason, count in found.left_out.items() if count}


def test_a_conversation_is_read_in_order_with_speakers_and_times() -> None:
    found = read(
        chain(
            message("Which knot?"),
            message("A bowline.", "assistant", create_time=START + 60),
            default_model_slug="gpt-5",
        )
    )
    assert [(turn.speaker, turn.time) for turn in found.turns] == [
        ("User", START),
        ("ChatGPT", START + 60),
    ]
    assert texts(found) == ["Which knot?", "A bowline."]
    assert (found.source, found.id, found.title, found.time) == ("chatgpt", "c-1", "Knots", START)
    assert found.metadata == {"model": "gpt-5"}
    assert left_out(found) == {}


def test_the_current_branch_is_followed_and_the_others_are_counted() -> None:
    value = chain(message("Which knot?"), message("A bowline.", "assistant"))
    value["mapping"]["old"] = {"message": message("A granny.", "assistant"), "parent": "0"}
    value["mapping"]["older"] = {"message": message("Thanks"), "parent": "old"}
    found = read(value)
    assert texts(found) == ["Which knot?", "A bowline."]
    assert left_out(found) == {BRANCHES: 2}


@pytest.mark.parametrize("current", [None, "gone", 7])
def test_without_a_current_node_the_newest_leaf_ends_the_branch(current: object) -> None:
    value = chain(message("Which knot?"), message("A bowline.", "assistant"), current_node=current)
    newer = message("A sheet bend.", "assistant", create_time=START + 99)
    value["mapping"]["new"] = {"message": newer, "parent": "0"}
    assert texts(read(value)) == ["Which knot?", "A sheet bend."]


def test_a_branch_in_a_circle_ends() -> None:
    value = chain(message("Which knot?"), message("A bowline.", "assistant"))
    value["mapping"]["root"]["parent"] = "1"
    assert texts(read(value)) == ["Which knot?", "A bowline."]


def test_what_was_not_said_aloud_is_left_out_and_counted() -> None:
    hidden = {"is_visually_hidden_from_conversation": True}
    found = read(
        chain(
            message("You are ChatGPT.", "system"),
            message("", content={"content_type": "user_editable_context", "user_profile": "x"}),
            message("secret", metadata=hidden),
            message("", "assistant", content={"content_type": "thoughts", "thoughts": []}),
            message("", "assistant", content={"content_type": "reasoning_recap", "content": "3s"}),
            message("search()", "assistant", recipient="web.run"),
            message("3 results", "tool"),
            message("A bowline.", "assistant", recipient="all"),
        )
    )
    assert texts(found) == ["A bowline."]
    assert left_out(found) == {HIDDEN: 3, REASONING: 2, TOOLS: 2}


def test_pictures_are_counted_and_speech_is_read() -> None:
    parts = [
        {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-1"},
        {"content_type": "audio_transcription", "text": "Is this a bowline?"},
        "And this?",
    ]
    picture = message("", content={"content_type": "multimodal_text", "parts": parts})
    paper = message("Read it.", metadata={"attachments": [{"name": "knots.pdf"}]})
    found = read(chain(picture, paper))
    assert texts(found) == ["Is this a bowline?\n\nAnd this?", "Read it."]
    assert left_out(found) == {FILES: 2}


def test_code_is_fenced() -> None:
    code = {"content_type": "code", "language": "python", "text": "print(1)"}
    plain = {"content_type": "code", "language": "unknown", "text": "ls"}
    found = read(chain(message("", "assistant", content=code), message("", content=plain)))
    assert texts(found) == ["```python\nprint(1)\n```", "```\nls\n```"]


def test_marks_of_citations_are_no_text() -> None:
    found = read(chain(message("Yes.\ue200cite\ue202turn0search1\ue201 No.【12†source】")))
    assert texts(found) == ["Yes. No."]


@pytest.mark.parametrize(
    "wrong",
    [
        {"mapping": {}},
        {"mapping": {"a": None, "b": 7, "c": {"message": "x"}, "d": {"message": {}}}},
        {"mapping": {"a": {"message": {"author": 1, "content": [], "metadata": 0}}}},
        {"mapping": {"a": {"message": {"content": {"parts": [None, 3, [], {}]}}}}},
        {"mapping": {"a": {"message": message("x\ud800\0")}}, "title": ["?"], "create_time": "?"},
    ],
)
def test_fields_that_are_missing_or_odd_do_no_harm(wrong: dict[str, Any]) -> None:
    found = read(wrong)
    assert found.time is None
    assert set(texts(found)) <= {"x"}
    assert len(found.id) == 32


def test_anything_else_is_no_conversation_of_chatgpt() -> None:
    assert read_chatgpt({"chat_messages": []}) is None
    assert read_chatgpt({"mapping": []}) is None
