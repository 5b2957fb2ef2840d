import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.server.cli.conftest import Command, Started

pytestmark = pytest.mark.slow


def test_arguments_are_pairs_or_one_json_object(cli: Command) -> None:
    pairs = cli("call", "add_document", "text=The crane lifts.", "title=Crane")
    assert (pairs.code, pairs.err) == (0, "")
    assert pairs.out.startswith("added: Crane (text: Crane), 1 chunk.")
    as_json = cli("call", "query", "--json", '{"query": "crane", "top_k": 1}', "--structured")
    assert [hit["title"] for hit in json.loads(as_json.out)["hits"]] == ["Crane"]


def test_a_value_may_hold_an_equals_sign(cli: Command) -> None:
    cli("call", "add_document", "text=a=b means equality", "title=Signs")
    assert "a=b means" in cli("call", "get_document", "raw_type=text", "raw_id=Signs").out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["quer", "query=x"], "Did you mean: query"),
        (["query"], "`query` is missing"),
        (["query", "query=x", "top_k=many"], "`top_k` is 'many'"),
        (["query", "query=x", "topk=1"], "`topk` is unknown"),
        (["read_file", "file_path=../secret"], "outside_sandbox"),
    ],
)
def test_a_call_that_fails_says_why_on_stderr(
    cli: Command, arguments: list[str], says: str
) -> None:
    ended = cli("call", *arguments)
    assert (ended.code, ended.out) == (1, "")
    assert says in ended.err


@pytest.mark.parametrize("command", [("call", "list_directory"), ("search", "files")])
def test_a_listed_tool_that_does_not_exist_is_an_error(
    cli: Command, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setenv("TOOLCRIB_SURFACE", "nope")
    ended = cli(*command)
    assert (ended.code, ended.out) == (1, "")
    assert "surface: No tool is called 'nope'" in ended.err


def test_a_structured_failure_is_a_result(cli: Command) -> None:
    ended = cli("call", "nothing", "--structured")
    assert (ended.code, ended.err) == (1, "")
    assert json.loads(ended.out)["error_type"] == "unknown_tool"


def test_ctrl_c_stops_what_the_call_had_started_and_says_so_in_a_line(
    toolcrib: Started, work: Path
) -> None:
    os.mkfifo(work / "pipe")
    process = toolcrib("call", "bash", "command=touch begun; exec > pipe; sleep 600")
    while not (work / "begun").exists():
        assert process.poll() is None
    with (work / "pipe").open() as pipe:
        process.send_signal(signal.SIGINT)
        assert pipe.read() == ""  # nobody holds its other end any more
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert err.startswith("Stopped. So are programs that the call had started.")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["query", "--json", "{"],
        ["query", "--json", "[]"],
        ["query", "x"],
        ["query", "x=1", "--json", "{}"],
    ],
)
def test_arguments_in_the_wrong_form_are_a_wrong_usage(cli: Command, arguments: list[str]) -> None:
    assert cli("call", *arguments).code == 2


def test_every_tool_is_listed_with_what_it_does(cli: Command) -> None:
    listed = json.loads(cli("tools", "--json").out)
    table = cli("tools").out
    assert [spec["name"] for spec in listed if spec["name"] not in table] == []
    lines = table.splitlines()
    head = lines.index("read_file  sandboxed: read, also view_text_file")
    assert lines[head + 1].strip() == "Reads a text file, or some of its lines."
    one = json.loads(cli("tools", "view_text_file").out)
    assert one["name"] == "read_file"
    assert "file_path" in one["input_schema"]["properties"]


def test_an_unknown_tool_is_exit_code_1(cli: Command) -> None:
    ended = cli("tools", "quer")
    assert (ended.code, ended.out) == (1, "")
    assert "Did you mean: query" in ended.err


def test_the_list_of_tools_makes_no_data_directory(cli: Command, work: Path) -> None:
    assert cli("tools").code == 0
    assert not (work.parent / "data").exists()


def test_a_command_that_a_failure_names_works_where_it_is_not_on_the_path(
    toolcrib: Started, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    _, err = toolcrib("call", "researcher_search", "query=Ada").communicate(timeout=60)
    (command,) = re.findall(r"`(\S+ \S+ import researchers) FILE`", err)
    assert command.split()[0] == f"TOOLCRIB_DATA_DIR={work.parent / 'data'}"
    line = f"{command} --sample --json"
    ended = subprocess.run(["sh", "-c", line], check=True, capture_output=True, text=True)  # noqa: S607  # as its reader would
    assert '"added": 40' in ended.stdout
