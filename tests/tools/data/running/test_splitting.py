from __future__ import annotations

import hashlib
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
    counts = {each.file.path: each.rows for each in made.parts}
    assert not list(made.notes)
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


def test_an_empty_part_of_few_rows_is_told(tmp_path: Path) -> None:
    write(tmp_path, ["Some words"])
    told = split(Sandbox(tmp_path), "rows.jsonl", PARTS, seed=0, overwrite=False).to_text()
    assert "Shares are met about" in told
    assert "these 1 rows have few different ones: test has 0 for 20%" in told


def test_lines_that_hold_no_row_are_in_no_part(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_bytes(b'{"text": "One"}\n\n{"text": broken\n"x"\n')
    made = split(Sandbox(tmp_path), "rows.jsonl", {"all": 1}, seed=0, overwrite=False)
    assert (made.rows, made.left_out, made.broken) == (1, 2, [3, 4])
    assert (tmp_path / "rows.all.jsonl").read_bytes() == b'{"text": "One"}\n'
    assert "left out: 2; the first: 3, 4." in (tmp_path / made.report_path).read_text()


def test_the_report_has_shares_rows_and_digests(tmp_path: Path) -> None:
    write(tmp_path, [f"This is text number {at}." for at in range(100)])
    made = split(Sandbox(tmp_path), "rows.jsonl", PARTS, seed=3, overwrite=False)
    told = json.loads((tmp_path / "rows.split.report.json").read_text())
    assert told == made.model_dump()
    assert (told["seed"], [each["share"] for each in told["parts"]]) == (3, [0.8, 0.2])
    content = (tmp_path / "rows.test.jsonl").read_bytes()
    assert hashlib.sha256(content).hexdigest() in (tmp_path / made.report_path).read_text()


def test_what_is_no_jsonl_with_texts_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"n": 1}\n')
    with pytest.raises(InvalidArgumentsError, match="texts"):
        split(Sandbox(tmp_path), "rows.jsonl", PARTS, seed=0, overwrite=False)
