import json
import os
from pathlib import Path

import pytest

from server.cli.index import MOST_BYTES, Found, read_records

MAIL = {"tool_id": "mail", "name": "Mail", "description": "Sends mail"}


def _ids(found: Found) -> list[str]:
    return [record.tool_id for record in found.records]


def _only_reason(found: Found) -> str:
    assert found.records == []
    (skipped,) = found.skipped
    return skipped.reason


def test_a_file_holds_a_record_or_a_list_of_them(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text(json.dumps([{**MAIL, "tool_id": "b1"}, MAIL]))
    (tmp_path / "a.JSON").write_bytes(
        "\ufeff".encode() + json.dumps({**MAIL, "tool_id": "a"}).encode()
    )
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "c.json").write_text(json.dumps({**MAIL, "tool_id": "c", "tags": ["é"]}))
    (tmp_path / "notes.txt").write_text("not a tool")
    found = read_records(tmp_path)
    assert found.skipped == []
    assert _ids(found) == ["a", "b1", "mail", "c"]
    assert found.records[3].file == tmp_path / "deep" / "c.json"
    assert found.records[3].fields == {**MAIL, "tool_id": "c", "tags": ["é"]}


def test_fields_that_no_record_has_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({**MAIL, "embedding": [0.1, 0.2]}))
    assert read_records(tmp_path).records[0].fields == MAIL


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is not JSON: Expecting value (line 1, column 1)."),
        (b'{"tool_id":\n3 4}', "is not JSON: Expecting ',' delimiter (line 2, column 3)."),
        (b"\xff\xfe{}", "is not UTF-8 (byte 0)."),
        (b"[" * 200_000, "is nested too deeply."),
        (b"1" * 5_000, "Exceeds the limit"),
        (b'"text"', "is not an object."),
        (b"[3]", "record 1: is not an object."),
        (b'{"name": "Mail"}', "tool_id: field required."),
        (b'[{"tool_id": "a", "name": 3}]', "record 1: name: input should be a valid string."),
        (b'{"tool_id": "", "tags": 1}', "tool_id: string should have at least 1 character, and 2"),
        (b'{"tool_id": "\\ud800", "name": "a"}', "tool_id: "),
    ],
)
def test_a_malformed_file_is_skipped_with_a_reason(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    (tmp_path / "bad.json").write_bytes(content)
    assert _only_reason(read_records(tmp_path)).startswith(reason)


def test_what_is_sound_beside_a_malformed_record_is_kept(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "list.json").write_text(json.dumps([{"name": "no id"}, MAIL]))
    found = read_records(tmp_path)
    assert _ids(found) == ["mail"]
    assert [skipped.file.name for skipped in found.skipped] == ["bad.json", "list.json"]


def test_of_two_records_with_one_id_the_first_counts(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps([MAIL, {**MAIL, "name": "Again"}]))
    (tmp_path / "b.json").write_text(json.dumps({**MAIL, "name": "Other"}))
    found = read_records(tmp_path)
    assert [record.fields["name"] for record in found.records] == ["Mail"]
    assert [skipped.reason for skipped in found.skipped] == [
        f"record 2: tool_id 'mail' is already in {tmp_path / 'a.json'}.",
        f"tool_id 'mail' is already in {tmp_path / 'a.json'}.",
    ]


def test_a_file_that_is_too_large_is_skipped(tmp_path: Path) -> None:
    with (tmp_path / "large.json").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    assert _only_reason(read_records(tmp_path)) == "is larger than 16 MB."


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    (tmp_path / "self.json").symlink_to("self.json")
    (tmp_path / "round").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "real.json").write_text(json.dumps(MAIL))
    found = read_records(tmp_path)
    assert _ids(found) == ["mail"]
    assert {skipped.file.name for skipped in found.skipped} == {"self.json", "round"}


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    assert _only_reason(read_records(tmp_path)) == "is not a regular file."


def test_a_name_that_is_no_text_is_skipped(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff.json")).write_text(json.dumps(MAIL))
    assert _only_reason(read_records(tmp_path)) == "has a name that is not valid UTF-8."


def test_hidden_and_generated_files_are_passed_over(tmp_path: Path) -> None:
    for name in (".hidden.json", ".git/a.json", "node_modules/b/package.json"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(MAIL))
    assert read_records(tmp_path) == Found()


@pytest.mark.boundary
@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_may_not_be_read_is_skipped(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    (tmp_path / "secret.json").write_text(json.dumps(MAIL))
    (tmp_path / "secret.json").chmod(0)
    closed.chmod(0)
    found = read_records(tmp_path)
    closed.chmod(0o700)
    assert {skipped.reason for skipped in found.skipped} == {"Permission denied."}
    assert len(found.skipped) == 2
