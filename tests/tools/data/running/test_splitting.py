import hashlib
import json
import re
from pathlib import Path

import pytest

from tools.core.errors import ConflictError, InvalidArgumentsError
from tools.data.running.splitting import SplitRecipe, SplitReport
from tools.data.running.splitting import split as split_one
from tools.sandbox.files.sandbox import Sandbox

PARTS = {"train": 0.8, "test": 0.2}


def write(root: Path, texts: list[str]) -> None:
    rows = (json.dumps({"id": at, "text": text}) for at, text in enumerate(texts))
    (root / "rows.jsonl").write_text("\n".join(rows))


def split(
    root: Path,
    parts: dict[str, float] = PARTS,
    *,
    seed: int = 0,
    key: str | None = None,
    overwrite: bool = False,
) -> SplitReport:
    recipe = SplitRecipe(source="rows.jsonl", text_key=key, seed=seed, parts=parts)
    return split_one(Sandbox(root), recipe, overwrite=overwrite)


def parts(root: Path, *, seed: int = 0) -> dict[str, set[str]]:
    split(root, seed=seed, overwrite=True)
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
    made = split(tmp_path)
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
        split(tmp_path)
    assert not (tmp_path / "rows.train.jsonl").exists()


def test_an_empty_part_of_few_rows_is_told(tmp_path: Path) -> None:
    write(tmp_path, ["Some words"])
    told = split(tmp_path).to_text()
    assert "Shares are met roughly" in told
    assert "these 1 rows have few different ones: test has 0 for 20%" in told


def test_lines_that_hold_no_row_are_in_no_part(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_bytes(b'{"text": "One"}\n\n{"text": broken\n"x"\n')
    made = split(tmp_path, {"all": 0.999, "none": 0.001})
    assert (made.rows, made.left_out, made.broken) == (1, 2, [3, 4])
    assert (tmp_path / "rows.all.jsonl").read_bytes() == b'{"text": "One"}\n'
    assert "left out: 2; the first: 3, 4." in (tmp_path / made.report_path).read_text()


def test_the_report_has_shares_rows_and_digests(tmp_path: Path) -> None:
    write(tmp_path, [f"This is text number {at}." for at in range(100)])
    made = split(tmp_path, seed=3)
    told = (tmp_path / made.report_path).read_text()
    content = (tmp_path / "rows.test.jsonl").read_bytes()
    assert "with the seed 3" in told
    assert "| 80.0% |" in told
    assert hashlib.sha256(content).hexdigest() in told


def test_what_is_no_jsonl_with_texts_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"n": 1}\n')
    with pytest.raises(InvalidArgumentsError, match="texts"):
        split(tmp_path)


def test_the_recipe_that_was_run_makes_the_same_parts_again(tmp_path: Path) -> None:
    write(tmp_path, [f"This is text number {at}." for at in range(100)])
    made = split(tmp_path, seed=3)
    before = [(tmp_path / each.file.path).read_bytes() for each in made.parts]
    written = (tmp_path / made.recipe_path).read_text()
    assert SplitRecipe.from_yaml(written) == SplitRecipe(
        source="rows.jsonl", text_key="text", seed=3, parts=PARTS
    )
    again = split_one(Sandbox(tmp_path), SplitRecipe.from_yaml(written), overwrite=True)
    assert [(tmp_path / each.file.path).read_bytes() for each in again.parts] == before
    assert (tmp_path / made.recipe_path).read_text() == written


def test_another_field_decides_the_parts_where_that_is_asked_for(tmp_path: Path) -> None:
    rows = [{"text": f"This is text number {at}.", "by": f"{at % 3}"} for at in range(90)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    made = split(tmp_path, {"a": 0.5, "b": 0.5}, key="by")
    by = [
        {json.loads(line)["by"] for line in (tmp_path / each.file.path).read_text().splitlines()}
        for each in made.parts
    ]
    assert not by[0] & by[1]
    with pytest.raises(InvalidArgumentsError, match="no_such"):
        split(tmp_path, key="no_such", overwrite=True)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[1]", "the file"),
        ("source: a.jsonl\nparts: {train: 2}", "parts.train"),
        ("source: a.jsonl\nparts: {'a/b': 0.5}", "parts.a/b"),
        ("source: a.jsonl\nparts: {}", "parts"),
        ("source: a.jsonl\nparts: {a: 0.1}", "two parts or more; for example a=0.1,rest=0.9"),
        ("source: a.jsonl\nparts: {a: 1}", "two parts or more; for example train=0.9,rest=0.1"),
        ("source: a.jsonl\nparts: {a: 0.1, b: 0.3}", "add up to 0.4, not to 1; for example a=0.25"),
        ("source: a.jsonl\nparts: {a: 0.5, b: 0.5, a: 0.5}", "the key 'a' is given twice"),
        ("source: a.jsonl\nsource: b.jsonl\nparts: {a: 0.5, b: 0.5}", "'source' is given twice"),
        ("source: a.jsonl\nparts: {a: 0.5, b: 0.5}\nsed: 1", "sed"),
        ("source: [", "not a recipe of a split"),
    ],
)
def test_what_is_no_recipe_of_a_split_is_refused_with_the_place(text: str, says: str) -> None:
    with pytest.raises(InvalidArgumentsError, match=re.escape(says)):
        SplitRecipe.from_yaml(text)


def test_shares_that_add_up_to_one_within_rounding_are_taken(tmp_path: Path) -> None:
    write(tmp_path, [f"This is text number {at}." for at in range(9)])
    made = split(tmp_path, {"a": 0.333, "b": 0.333, "c": 0.333})
    assert sum(each.rows for each in made.parts) == 9


def test_a_part_never_replaces_what_is_split(tmp_path: Path) -> None:
    (tmp_path / "a.rows.jsonl").write_text('{"text": "One"}\n')
    recipe = SplitRecipe(source="./a.rows.jsonl", parts={"rows": 0.5, "rest": 0.5})
    with pytest.raises(ConflictError, match="never replaced"):
        split_one(Sandbox(tmp_path), recipe, overwrite=True)
    assert (tmp_path / "a.rows.jsonl").read_text() == '{"text": "One"}\n'
