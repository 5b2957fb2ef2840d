from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tools.data.running.environment import DataEnvironment

Command = Callable[..., Any]
ROW = '{"text": "The bowline makes a loop that does not slip."}\n'


def test_several_files_are_inspected_without_data_juicer(cli: Command, work: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        (work / name).write_text(ROW * 2)
    ended = cli("data", "inspect", "a.jsonl", "b.jsonl")
    assert ended.code == 0
    assert "a.jsonl: jsonl, 2 rows" in ended.out
    assert "b.jsonl: jsonl, 2 rows" in ended.out


def test_without_data_juicer_nothing_is_cleaned_and_the_command_is_told(
    cli: Command, work: Path
) -> None:
    (work / "a.jsonl").write_text(ROW)
    ended = cli("data", "clean", "a.jsonl")
    assert ended.code == 1
    assert "data setup`" in ended.err
    assert [each.name for each in work.glob("a.*")] == ["a.jsonl"]


def test_a_file_is_split_by_shares(cli: Command, work: Path) -> None:
    (work / "a.jsonl").write_text("".join(ROW.replace("loop", f"loop {at}") for at in range(200)))
    ended = cli("data", "split", "a.jsonl", "--parts", "train=0.8,dev=0.1,test=0.1")
    assert ended.code == 0, ended.err
    lines = [
        len((work / f"a.{part}.jsonl").read_text().splitlines())
        for part in ("train", "dev", "test")
    ]
    assert sum(lines) == 200
    assert lines[0] > 100


@pytest.mark.parametrize("parts", ["train", "train=much", "tr/ain=0.5", "train=0"])
def test_shares_that_are_none_are_a_wrong_usage(cli: Command, work: Path, parts: str) -> None:
    (work / "a.jsonl").write_text(ROW)
    assert cli("data", "split", "a.jsonl", "--parts", parts).code == 2


@pytest.mark.data
def test_files_are_deduplicated_and_exported(
    cli: Command, work: Path, data_juicer: DataEnvironment
) -> None:
    (work.parent / "data").mkdir()
    (work.parent / "data" / "data-juicer").symlink_to(data_juicer.path)
    (work / "a.jsonl").write_text(ROW * 3)
    ended = cli("data", "dedupe", "a.jsonl")
    assert ended.code == 0, ended.err
    assert (work / "a.deduped.jsonl").read_text() == ROW
    assert cli("data", "export", "a.deduped.jsonl", "--to", "parquet").code == 0
    assert (work / "a.deduped.export.parquet").read_bytes().startswith(b"PAR1")
