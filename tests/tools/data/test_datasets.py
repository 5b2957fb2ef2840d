import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

ROWS: list[dict[str, Any]] = [
    {"id": 1, "body": "The bowline makes a loop.", "meta": {"lang": "en", "score": 0.5}},
    {"id": 2, "body": "the bowline  makes a loop.", "meta": {"lang": "en", "score": 1}},
    {"id": "3", "body": None, "meta": {"lang": ""}},
]


def write(root: Path, form: str) -> str:
    """Writes the rows in a form; returns the path."""
    path = root / f"rows.{form}"
    match form:
        case "jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
        case "json":
            path.write_text(json.dumps(ROWS))
        case "csv" | "tsv":
            flat = pd.DataFrame(ROWS).drop(columns="meta")
            flat.to_csv(path, index=False, sep="," if form == "csv" else "\t")
    return path.name


@pytest.mark.parametrize("form", ["jsonl", "json", "csv", "tsv"])
async def test_rows_fields_and_texts_are_told_without_data_juicer(crib: Any, form: str) -> None:
    seen = await crib.call("inspect_dataset", dataset_source=write(crib.root, form))
    assert (seen["form"], seen["rows"], seen["text_key"], seen["repeated"]) == (form, 3, "body", 1)
    (body,) = (field for field in seen["fields"] if field["name"] == "body")
    assert (body["filled"], body["longest"]) == (2, len(str(ROWS[1]["body"])))
    assert len(seen["sample"]) == 3


BROKEN: dict[str, tuple[bytes, str]] = {
    "a.jsonl": (b'{"text": "x"}\n\n{"text": x}\n', "line 3: Expecting value, character 10"),
    "b.jsonl": (b'[1]\n{"text": "x"}\n', "line 1: another value"),
    "c.jsonl": (b'{"text": "x"}\n{"text": "\xff"}\n', "line 2: not all of it is Unicode"),
    "d.jsonl": (b'{"text": "x"}\n{"text": "\\ud800"}', "line 2: not all of it is Unicode"),
    "a.json": (b'[{"text": "x"},\n {"text": "y"]', "line 2: Expecting ',' delimiter, character 14"),
    "b.json": (b'[{"text": "x"}\n {"text": "y"}]', "line 2: Expecting ',' delimiter, character 2"),
    "c.json": (b'[{"text": "x"},\n', "line 2: Expecting ']', character 1"),
    "d.json": (b'[{"text": "x"},\n3]', "line 2: value 2 of its array is not an object"),
    "e.json": (b'[{"text": "x"},\n{"text": "\xff"}]', "line 2: not all of it is Unicode"),
    "f.json": (b'[{"text": "x"}]\n]', "line 2: Extra data, character 1"),
    "a.csv": (b"id,text\n1,x\n2,y,z\n", "line 3: 3 fields, and the header has 2"),
    "b.csv": (b'id,text\n1,"x\ny"\n2,\xff\n', "line 4: not all of it is Unicode"),
    "c.csv": (b'id,text\n1,x\n2,"y\n3\n', "line 3: a quote is never closed"),
    "d.csv": (b"id,text\n1,x\n2,y\rz\n", "line 3: a carriage return stands without a line feed"),
    "a.tsv": (b"id\ttext\n1\tx,y\n2\ty\tz\n", "line 3: 3 fields, and the header has 2"),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_what_holds_no_row_is_told_with_its_line(crib: Any, name: str) -> None:
    content, says = BROKEN[name]
    (crib.root / name).write_bytes(content)
    seen = await crib.call("inspect_dataset", dataset_source=name)
    assert (seen["not_readable"], seen["first_not_readable"]) == (1, [says])
    assert seen["looked"] == seen["rows"] + 1
    told = await crib.text("inspect_dataset", dataset_source=name)
    assert f"Not readable: 1 of {seen['looked']} rows: {says}." in told


async def test_of_many_broken_lines_the_first_are_told(crib: Any) -> None:
    (crib.root / "many.jsonl").write_text('{"text": "x"}\n' + "no\n" * 9)
    seen = await crib.call("inspect_dataset", dataset_source="many.jsonl", sample_size=1)
    assert (seen["not_readable"], len(seen["first_not_readable"]), seen["looked"]) == (9, 5, 10)
    told = await crib.text("inspect_dataset", dataset_source="many.jsonl")
    assert "character 1; and 4 more." in told


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "it is empty"),
        (b'{"text": "x"}\n', "it begins with b'{\"te', not b'PAR1'"),
        (b"PAR1 a page", "its end is missing, so it was cut off or is still being written"),
        (b"PAR1 a page, and its description\xff\0\0\0PAR1", "its end is missing"),
    ],
)
async def test_a_parquet_file_that_is_not_whole_is_told_by_its_name(
    crib: Any, content: bytes, says: str
) -> None:
    (crib.root / "a.parquet").write_bytes(content)
    for tool in ("inspect_dataset", "clean_dataset"):
        kind, told = await crib.failure(tool, dataset_source="a.parquet")
        assert kind == "invalid_arguments"
        assert f"a.parquet is not a whole Parquet file: {says}" in told
        assert "Next: Write or fetch the file again." in told


@pytest.mark.parametrize("name", ["a.json", "d.json", "e.json"])
async def test_json_that_is_broken_is_not_cleaned_and_the_place_is_told(
    crib: Any, name: str
) -> None:
    content, says = BROKEN[name]
    (crib.root / name).write_bytes(content)
    kind, told = await crib.failure("clean_dataset", dataset_source=name)
    assert kind == "invalid_arguments"
    assert f"{name} cannot be read: {says}." in told


@pytest.mark.parametrize("indent", [None, 1])
async def test_the_first_rows_of_a_large_array_are_seen(crib: Any, indent: int | None) -> None:
    rows = [{"text": "Some words. " * 200, "at": at} for at in range(2_000)]
    (crib.root / "large.json").write_text(json.dumps(rows, indent=indent))
    seen = await crib.call("inspect_dataset", dataset_source="large.json", sample_size=5)
    assert (seen["sampled"], seen["not_readable"], seen["text_key"]) == (5, 0, "text")
    assert "rows" not in seen


async def test_fields_that_are_missing_in_a_row_are_empty(crib: Any) -> None:
    (crib.root / "few.csv").write_text('id,text\n1,"x\ny"\n\n   \n2\n')
    seen = await crib.call("inspect_dataset", dataset_source="few.csv")
    assert seen["sample"] == [{"id": "1", "text": "x\ny"}, {"id": "2", "text": None}]
    assert seen["not_readable"] == 0


async def test_fields_in_objects_are_listed_with_all_their_types(crib: Any) -> None:
    source = write(crib.root, "jsonl")
    fields = (await crib.call("list_dataset_fields", dataset_source=source))["fields"]
    assert {field["name"]: field["types"] for field in fields} == {
        "id": ["integer", "string"],
        "body": ["null", "string"],
        "meta": ["object"],
        "meta.lang": ["string"],
        "meta.score": ["integer", "number"],
    }


async def test_a_folder_of_texts_has_a_row_for_each(crib: Any) -> None:
    (crib.root / "notes" / "more").mkdir(parents=True)
    for name in ("notes/a.txt", "notes/more/b.md", "notes/c.png"):
        (crib.root / name).write_text(f"This is {name}.")
    seen = await crib.call("inspect_dataset", dataset_source="notes")
    assert (seen["form"], seen["rows"], seen["files"]) == ("text", 2, 2)
    assert {row["text"] for row in seen["sample"]} == {
        "This is notes/a.txt.",
        "This is notes/more/b.md.",
    }


async def test_the_rows_of_a_large_file_are_estimated(crib: Any) -> None:
    line = json.dumps({"text": "Some words. " * 40}) + "\n"
    (crib.root / "large.jsonl").write_text(line * 10_000)
    seen = await crib.call("inspect_dataset", dataset_source="large.jsonl", sample_size=5)
    assert "rows" not in seen
    assert 9_000 < seen["about_rows"] < 11_000
    assert seen["sampled"] == 5


@pytest.mark.parametrize(
    ("source", "kind", "says"),
    [
        ("nothing.jsonl", "not_found", "nothing.jsonl"),
        ("../out.jsonl", "outside_sandbox", "../out.jsonl"),
        ("image.png", "invalid_arguments", ".parquet"),
        ("data", "invalid_arguments", "data/rows.jsonl"),
        ("rows.parquet", "unavailable", "data setup`"),
    ],
)
async def test_what_cannot_be_inspected_is_refused_with_what_could(
    crib: Any, source: str, kind: str, says: str
) -> None:
    (crib.root / "data").mkdir()
    for name in ("image.png", "data/rows.jsonl"):
        (crib.root / name).write_bytes(b"{}")
    (crib.root / "rows.parquet").write_bytes(b"PAR1\0\0\0\0PAR1")
    failed, told = await crib.failure("inspect_dataset", dataset_source=source)
    assert failed == kind, told
    assert says in told


async def test_without_data_juicer_nothing_is_cleaned(crib: Any) -> None:
    source = write(crib.root, "jsonl")
    kind, told = await crib.failure("clean_dataset", dataset_source=source)
    assert kind == "unavailable"
    assert "data setup`" in told
    assert [each.name for each in crib.root.iterdir()] == [source]


async def test_a_data_set_without_texts_is_not_cleaned(crib: Any) -> None:
    (crib.root / "numbers.jsonl").write_text('{"n": 1}\n')
    kind, told = await crib.failure("clean_dataset", dataset_source="numbers.jsonl")
    assert kind == "invalid_arguments"
    assert "text_key" in told


@pytest.mark.parametrize(
    ("output", "kind"), [("rows.jsonl", "conflict"), (".git/rows.jsonl", "permission_denied")]
)
async def test_what_could_not_be_written_is_refused_before_anything_runs(
    crib: Any, output: str, kind: str
) -> None:
    arguments = {"dataset_source": write(crib.root, "jsonl"), "output_path": output}
    refused, told = await crib.failure("clean_dataset", **arguments, overwrite=True)
    assert refused == kind
    assert output in told


@pytest.mark.data
async def test_a_parquet_file_is_read_by_the_worker(workshop: Any) -> None:
    (workshop.root / "raw.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS[:2]))
    plan = (
        "# Copy it\n# approval_required: false\n"
        "dataset_path: raw.jsonl\nexport_path: rows.parquet\ntext_keys: [body]\n"
        "process:\n- whitespace_normalization_mapper:\n"
    )
    (workshop.root / "plan.yaml").write_text(plan)
    await workshop.call("apply_recipe", plan_path="plan.yaml", confirm=True)
    seen = await workshop.call("inspect_dataset", dataset_source="rows.parquet", sample_size=1)
    assert (seen["form"], seen["rows"], seen["sampled"], seen["text_key"]) == (
        *("parquet", 2, 1),
        "body",
    )
    assert seen["sample"][0]["meta"] == {"lang": "en", "score": 0.5}
