from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.core.errors import ConflictError, InvalidArgumentsError
from tools.data.running.splitting import split
from tools.sandbox.files.sandbox import Sandbox

PARTS = {"train": 0.8, "test": 0.2}


def write(root: Path, texts: list[str]) -> None:
    rows = (json.dumps({"id": at, "text": text}) for at, text in enumerate(texts))
    (root / "rows.jsonl").write_text("\n".join(rows))


def parts(root: Path, *, seed: int = 0) -> dict[str, set[str]]:
    split(Sandbox(root), "rows.jsonl", PARTS, seed=seed, overwrite=True)
    return {
        part: {
            json.loads(line)["text"]
            for line in (root / f"rows.{part}.jsonl").read_text().splitlines()
        }
        for part in PARTS
    }


def test_every_row_is_in_one_part_and_shares_are_met_about(tmp_path: Path) -> None:
    texts = [f"This is text number {at}." for at in range(1_000)]
    write(tmp_path, texts)
    made = split(Sandbox(tmp_path), "rows.jsonl", PARTS, seed=0, overwrite=False)
    counts = {file.path: rows for file, rows in made}
    assert sum(counts.values()) == 1_000
    assert 150 < counts["rows.test.jsonl"] < 250
    found = parts(tmp_path)
    assert found["train"] | found["test"] == set(texts)
    assert not found["train"] & found["test"]


def test_the_same_text_is_in_one_part_in_any_case_and_spacing(tmp_path: Path) -> None:
    texts = [f"Text number {at}" for at in range(50)]
    write(tmp_path, [*texts, *(text.upper().replace(" ", "  ") for text in texts)])
    found = parts(tmp_path)
    plain = {part: {" ".join(t.lower().split()) for t in each} for part, each in found.items()}
    assert not plain["train"] & plain["test"]


def test_a_row_stays_in_its_part_when_others_are_added(tmp_path: Path) -> None:
    texts = [f"Text number {at}" for at in range(200)]
    write(tmp_path, texts[:100])
    before = parts(tmp_path)
    write(tmp_path, texts)
    after = parts(tmp_path)
    assert before["test"] <= after["test"]
    assert parts(tmp_path, seed=1)["test"] != after["test"]


def test_nothing_that_is_there_is_replaced_unasked(tmp_path: Path) -> None:
    write(tmp_path, ["Some words"])
    (tmp_path / "rows.test.jsonl").write_text("mine")
    with pytest.raises(ConflictError):
        split(Sandbox(tmp_path), "rows.jsonl", PARTS, seed=0, overwrite=False)
    assert not (tmp_path / "rows.train.jsonl").exists()


def test_what_is_no_jsonl_with_texts_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"n": 1}\n')
    with pytest.raises(InvalidArgumentsError, match="texts"):
        split(Sandbox(tmp_path), "rows.jsonl", PARTS, seed=0, overwrite=False)
