import io
import json
import zipfile
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.errors import UnreadableDocumentError
from storage.reading import chat_export as export
from storage.reading.chat_export import read_export
from storage.reading.conversations import Conversation


def chat(number: int, text: str = "Rye.") -> dict[str, Any]:
    turns = [{"speaker": "Ada", "time": "2026-03-14T15:09:26Z", "text": text}]
    return {"conversation": number, "title": f"Chat {number}", "turns": turns}


CHATS = [chat(1), chat(2), chat(3)]


def read(data: bytes, name: str = "chats.json", **more: int) -> Iterator[Conversation | None]:
    return read_export(io.BytesIO(data), name=name, **more)


def ids(found: Iterator[Conversation | None]) -> list[str | None]:
    return [None if each is None else each.id for each in found]


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


def test_the_plain_form_is_read() -> None:
    (found,) = read(json.dumps(chat(7)).encode())
    assert found is not None
    (turn,) = found.turns
    assert (found.source, found.id, found.title) == ("chat", "7", "Chat 7")
    assert (turn.speaker, turn.time, turn.text) == ("Ada", 1_773_500_966.0, "Rye.")


@pytest.mark.parametrize(
    "data",
    [
        json.dumps(CHATS).encode(),
        json.dumps(CHATS, indent=2).encode("utf-8-sig"),
        "\n".join(map(json.dumps, CHATS)).encode(),
        "\r\n\r\n".join(map(json.dumps, CHATS)).encode() + b"\r\n",
    ],
    ids=["list", "indented, with a mark", "lines", "lines of Windows"],
)
def test_lists_and_lines_are_read(data: bytes) -> None:
    assert ids(read(data)) == ["1", "2", "3"]


def test_conversations_longer_than_what_is_read_at_once_are_whole() -> None:
    chats = [chat(number, f"{number} é" * 700_000) for number in range(3)]
    found = list(read(json.dumps(chats, ensure_ascii=False).encode()))
    assert [each and each.turns[0].text for each in found] == [
        one["turns"][0]["text"] for one in chats
    ]


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"[]", b"{}", b"not JSON", b'[{"id": "message_feedback"}]', b'{"mapping": [1, 2]}'),
        *(b'{"turns": [{"text": "no speaker"}]}', b"[1, 2, 3]", b'{"turns": [' + b"[" * 100_000),
        b"\xff\xfe\x00\x01",
    ],
)
def test_other_files_are_no_exports(data: bytes) -> None:
    assert list(read(data)) == []


def test_what_is_no_conversation_among_them_is_told() -> None:
    mixed = [chat(1), None, {"id": "?"}, 7, chat(2)]
    assert ids(read(json.dumps(mixed).encode())) == ["1", None, None, None, "2"]


def test_what_stands_before_the_damage_is_read() -> None:
    found = read(json.dumps(CHATS).encode()[:-40])
    assert [next(found), next(found)] != [None, None]
    with pytest.raises(UnreadableDocumentError, match=r"'chats.json' cannot be read to its end"):
        next(found)


def test_a_value_too_long_to_hold_is_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "MAX_CONVERSATION_CHARS", 3_000_000)
    found = read(json.dumps([chat(1), chat(2, "x" * 5_000_000)]).encode())
    assert next(found) is not None
    with pytest.raises(UnreadableDocumentError, match="more than 3,000,000 characters"):
        next(found)


def test_an_archive_is_read_without_what_holds_no_conversations() -> None:
    data = zipped(
        {
            "user.json": b'{"id": "u", "email": "ada@example.org"}',
            "conversations-001.json": json.dumps(CHATS[1:]).encode(),
            "conversations-000.json": json.dumps(CHATS[:1]).encode(),
            "chat.html": b"<html>" + json.dumps(CHATS).encode(),
            "../../etc/conversations.json": json.dumps([chat(9)]).encode(),
        }
    )
    assert ids(read(data, "export.ZIP")) == ["9", "1", "2", "3"]


def test_an_archive_of_other_things_is_no_export() -> None:
    assert list(read(zipped({"a.txt": b"words", "b.json": b"{}"}), "a.zip")) == []


def test_an_archive_that_unpacks_to_too_much_is_refused_before_it_is_unpacked() -> None:
    bomb = zipped({"conversations.json": b"[" + b" " * 10_000_000})
    assert len(bomb) < 20_000
    with pytest.raises(UnreadableDocumentError, match="unpacks to too much: 10,000,001 bytes"):
        list(read(bomb, "bomb.zip", max_bytes=1_000_000))


def test_an_archive_that_lies_about_its_size_is_damaged() -> None:
    data = zipped({"conversations.json": json.dumps(CHATS).encode()})
    size = len(json.dumps(CHATS)).to_bytes(4, "little")
    lying = data.replace(size, (50).to_bytes(4, "little"))
    assert lying != data
    with pytest.raises(UnreadableDocumentError, match="CRC"):
        list(read(lying, "lying.zip"))


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_members_packed_without_a_bound_are_passed_over(method: int) -> None:
    data = zipped({"conversations.json": json.dumps(CHATS).encode()}, method)
    assert list(read(data, "a.zip")) == []


@given(st.binary(max_size=200), st.integers(0, 600))
def test_any_damage_ends_in_an_error_that_names_the_file(noise: bytes, at: int) -> None:
    data = zipped({"conversations.json": json.dumps(CHATS).encode()})
    at %= len(data)
    try:
        list(read(data[:at] + noise + data[at + len(noise) :], "a.zip"))
    except UnreadableDocumentError as error:
        assert "'a.zip" in error.message  # noqa: PT017  # it may also be sound


KEYS = st.sampled_from(
    """
    mapping current_node parent message author role content content_type parts text metadata
    recipient attachments create_time title id conversation_id chat_messages uuid sender
    parent_message_uuid current_leaf_message_uuid extracted_content files type turns speaker time
    """.split()  # noqa: SIM905  # two dozen names read best as text
)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | KEYS
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


@given(
    st.dictionaries(KEYS, JSON, max_size=4),
    st.sampled_from(("mapping", "chat_messages", "turns")),
    st.lists(st.dictionaries(KEYS, JSON, max_size=5), max_size=4),
)
def test_any_json_is_read_as_conversations_or_not(
    about: dict[str, Any], key: str, messages: list[dict[str, Any]]
) -> None:
    nodes = {str(number): {"message": each} for number, each in enumerate(messages)}
    value = {**about, key: nodes if key == "mapping" else messages}
    for found in read(json.dumps([chat(1), value]).encode()):
        if found is not None:
            context = found.to_context()
            assert context.title
            assert context.raw_id
            assert all(turn.content.strip() and turn.heading for turn in context.turns)
            json.dumps([context.title, [turn.content for turn in context.turns]]).encode()
