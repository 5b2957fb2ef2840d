from datetime import datetime
from typing import Any

import pytest

from storage.reading.chat_export import read_claude
from storage.reading.conversations import BRANCHES, FILES, OTHER, REASONING, TOOLS, Conversation

ROOT = "00000000-0000-4000-8000-000000000000"
TIME = "2026-03-14T15:09:26.535897Z"


def message(text: str, sender: str = "human", **more: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text}] if text else []
    return {"sender": sender, "text": text, "content": content, "created_at": TIME} | more


def conversation(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    about = {"uuid": "c-2", "name": "Bread", "summary": "", "created_at": TIME, "updated_at": TIME}
    return {**about, "chat_messages": list(messages), **more}


def read(value: dict[str, Any]) -> Conversation:
    found = read_claude(value)
    assert found is not None
    return found


def texts(found: Conversation) -> list[str]:
    return [turn.text for turn in found.turns]


def left_out(found: Conversation) -> dict[str, int]:
    return {reason: count for reason, count in found.left_out.items() if count}


def test_a_conversation_is_read_in_order_with_speakers_and_times() -> None:
    value = conversation(message("Why rye?"), message("It keeps.", "assistant"), summary="Of rye.")
    found = read(value)
    moment = datetime.fromisoformat(TIME).timestamp()
    assert [(turn.speaker, turn.time, turn.text) for turn in found.turns] == [
        ("User", moment, "Why rye?"),
        ("Claude", moment, "It keeps."),
    ]
    assert (found.source, found.id, found.title, found.time) == ("claude", "c-2", "Bread", moment)
    assert found.summary == "Of rye."
    assert left_out(found) == {}


def test_blocks_that_are_no_text_are_left_out_and_counted() -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "Look."},
        {"type": "tool_use", "name": "search", "input": {}},
        {"type": "tool_result", "content": []},
        {"type": "token_budget"},
        {"type": "text", "text": "Rye."},
    ]
    found = read(conversation(message("x", "assistant", content=blocks)))
    assert texts(found) == ["Look.\n\nRye."]
    assert left_out(found) == {REASONING: 1, TOOLS: 2, OTHER: 1}


def test_without_blocks_the_text_is_taken_but_for_its_placeholders() -> None:
    text = "Look.\n```\nThis block is not supported on your current device yet.\n```\n\nRye."
    assert texts(read(conversation(message(text, content=[])))) == ["Look.\n\n\nRye."]


def test_texts_that_were_attached_are_part_of_what_was_said() -> None:
    pasted = {"file_name": "", "extracted_content": "A long paste."}
    named = {"file_name": "rye.txt", "extracted_content": "Rye."}
    picture = {"file_name": "loaf.png"}
    said = message("See", attachments=[pasted, named, picture], files=[picture], files_v2=[picture])
    found = read(conversation(said, message("", attachments=[pasted])))
    assert texts(found) == ["See\n\nA long paste.\n\nrye.txt:\n\nRye.", "A long paste."]
    assert left_out(found) == {FILES: 2}


def tree() -> list[dict[str, Any]]:
    return [
        message("Why rye?", uuid="1", parent_message_uuid=ROOT),
        message("It keeps.", "assistant", uuid="2", parent_message_uuid="1"),
        message("Why oats?", uuid="3", parent_message_uuid=ROOT),
        message("They fill.", "assistant", uuid="4", parent_message_uuid="3"),
    ]


def test_of_several_branches_the_last_is_read() -> None:
    found = read(conversation(*tree()))
    assert texts(found) == ["Why oats?", "They fill."]
    assert left_out(found) == {BRANCHES: 2}


def test_of_several_branches_the_one_with_the_current_leaf_is_read() -> None:
    found = read(conversation(*tree(), current_leaf_message_uuid="2"))
    assert texts(found) == ["Why rye?", "It keeps."]


def test_where_a_parent_is_missing_everything_is_read() -> None:
    found = read(conversation(*tree()[1:2], *tree()[3:]))
    assert texts(found) == ["It keeps.", "They fill."]
    assert left_out(found) == {}


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [None, 3, {}, []],
        [{"content": [None, {"type": 3}], "attachments": [None], "files": 1, "sender": None}],
        [{"text": None, "content": "text", "created_at": "yesterday", "parent_message_uuid": 1}],
    ],
)
def test_fields_that_are_missing_or_odd_do_no_harm(messages: list[Any]) -> None:
    found = read({"chat_messages": messages, "name": None})
    assert (found.turns, found.time) == ((), None)
    assert len(found.id) == 32


def test_anything_else_is_no_conversation_of_claude() -> None:
    assert read_claude({"mapping": {}}) is None
