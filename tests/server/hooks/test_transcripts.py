import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from server.hooks.transcripts import TAIL_BYTES, last_answer

USER = {"type": "user", "message": {"role": "user", "content": "Say hello."}}
RESULT = {"type": "user", "message": {"role": "user", "content": [{"type": "tool_result"}]}}


@pytest.mark.parametrize(
    "record",
    [
        {"type": "assistant", "message": {"content": [{"type": "text", "text": "Hello."}]}},
        {"type": "assistant.message", "data": {"content": "Hello."}},
        {
            "type": "response_item",
            "payload": {
                "role": "assistant",
                "content": [{"type": "output_text", "text": "Hello."}],
            },
        },
        {"role": "assistant", "text": "Hello."},
    ],
)
def test_the_last_answer_is_read_in_each_clients_form(
    tmp_path: Path, record: dict[str, Any]
) -> None:
    path = tmp_path / "transcript.jsonl"
    lines = [{"role": "assistant", "text": "Earlier."}, USER, record, RESULT]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert last_answer(path) == "Hello."


def test_a_tool_call_is_no_answer(tmp_path: Path) -> None:
    path = tmp_path / "transcript.jsonl"
    call = {"type": "assistant", "message": {"content": [{"type": "tool_use", "name": "Bash"}]}}
    path.write_text(f"{json.dumps(USER)}\n{json.dumps(call)}\nnot JSON", encoding="utf-8")
    assert last_answer(path, wait=0) == ""


def test_only_the_end_of_a_long_transcript_is_read(tmp_path: Path) -> None:
    path = tmp_path / "transcript.jsonl"
    first, last = ({"role": "assistant", "text": text} for text in ("First.", "Last."))
    filler = "\n".join([json.dumps(USER)] * (TAIL_BYTES // 60))
    path.write_text(f"{json.dumps(first)}\n{filler}", encoding="utf-8")
    assert last_answer(path, wait=0) == ""
    path.write_text(f"{filler}\n{json.dumps(last)}", encoding="utf-8")
    assert last_answer(path) == "Last."


def test_a_missing_transcript_has_no_answer(tmp_path: Path) -> None:
    assert last_answer(tmp_path / "missing.jsonl", wait=0) == ""


def test_an_answer_that_is_written_while_the_hook_runs_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "transcript.jsonl"
    lines = [{"role": "assistant", "text": "Earlier."}, USER, {"role": "assistant", "text": "Now."}]
    path.write_text("\n".join(map(json.dumps, lines[:2])), encoding="utf-8")
    assert last_answer(path, wait=0) == ""
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(last_answer, path, wait=30)
        path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
        assert answer.result() == "Now."
