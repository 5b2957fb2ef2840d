"""What recipes leave as it is, in every form of file, and which texts they work on."""

import bz2
import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tools.data.recipe import DatasetSpec, Plan, ProcessSpec, Recipe, Step

CLEANS: dict[str, dict[str, Any]] = {
    "whitespace_normalization_mapper": {},
    "document_deduplicator": {"lowercase": True},
}
LINES = '{"text": "Grüße\u00a0dort", "n": 1.10}\n{"text": "Zwei", "at": "2026-01-02"}\n'
CLEANED = LINES.replace("\u00a0", " ")
PACKED: dict[str, Callable[[bytes], bytes]] = {
    "a.jsonl.gz": gzip.compress,
    "a.jsonl.bz2": bz2.compress,
    "a.jsonl.xz": lzma.compress,
    "a.jsonl.zst": zstandard.compress,
    "wide.jsonl": lambda content: content.decode().encode("utf-16"),
    "marked.jsonl": lambda content: b"\xef\xbb\xbf" + content,
}


OWN = """\
from data_juicer.ops.base_op import OPERATORS, Mapper, Selector

@OPERATORS.register_module("shout_mapper")
class Shout(Mapper):
    _batched_op = True

    def process_batched(self, samples):
        rows = [at for at, text in enumerate(samples["text"]) if len(text) > 1]
        left = {name: [values[at] for at in rows] for name, values in samples.items()}
        return {**left, "text": [text.upper() for text in left["text"]]}

@OPERATORS.register_module("graded_selector")
class Graded(Selector):
    def process(self, dataset):
        return dataset.select([at for at, z in enumerate(dataset["z"]) if z is not None])
"""


def save(
    crib: Any,
    source: str,
    steps: dict[str, dict[str, Any]],
    *keys: str,
    to: str = "out.jsonl",
    **more: Any,
) -> str:
    """Saves a plan; returns its path."""
    recipe = Recipe.from_config(
        {
            "dataset_path": source,
            "export_path": to,
            "text_keys": list(keys or ["text"]),
            "process": [{name: each} for name, each in steps.items()],
            **more,
        }
    )
    plan = Plan(user_intent="Try it", recipe=recipe, approval_required=False)
    (crib.root / "plan.yaml").write_text(plan.to_yaml(), encoding="utf-8")
    (crib.root / to).unlink(missing_ok=True)
    return "plan.yaml"


async def run(
    crib: Any, source: str, steps: dict[str, dict[str, Any]], *keys: str, **more: Any
) -> tuple[dict[str, Any], Path]:
    """Runs a recipe; returns its report and what it wrote."""
    plan = save(crib, source, steps, *keys, **more)
    report = await crib.call("apply_recipe", plan_path=plan, confirm=True)
    return report, crib.root / more.get("to", "out.jsonl")


def write(crib: Any, name: str, *rows: Any) -> str:
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (crib.root / name).write_text(text, encoding="utf-8")
    return name


@pytest.mark.parametrize("name", PACKED)
async def test_the_first_rows_of_a_packed_file_are_seen(crib: Any, name: str) -> None:
    (crib.root / name).write_bytes(PACKED[name](LINES.encode()))
    seen = await crib.call("inspect_dataset", dataset_source=name)
    assert (seen["form"], seen["rows"], seen["text_key"]) == ("jsonl", 2, "text")
    assert seen["sample"][0] == {"text": "Grüße\u00a0dort", "n": 1.1}


async def test_a_packed_file_that_was_cut_off_is_refused(crib: Any) -> None:
    (crib.root / "cut.jsonl.gz").write_bytes(gzip.compress(LINES.encode() * 99)[:-9])
    kind, told = await crib.failure("inspect_dataset", dataset_source="cut.jsonl.gz")
    assert kind == "invalid_arguments"
    assert "cut.jsonl.gz: it cannot be decompressed" in told


async def test_a_first_row_of_many_megabytes_is_seen(crib: Any) -> None:
    source = write(crib, "long.jsonl", {"text": "long words " * 500_000}, {"text": "short"})
    seen = await crib.call("list_dataset_fields", dataset_source=source)
    assert (seen["sampled"], seen["fields"][0]["name"]) == (2, "text")


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.jsonl", '{"text": "x"}\n{"text": "y", "text": "z"}\n', "line 2: the key 'text'"),
        ("b.jsonl", '{"text": "x", "m": {"a": 1, "a": 2}}\n', "line 1: the key 'a' appears twice"),
        ("c.json", '[{"text": "x"},\n{"text": "y", "text": 1}]', "line 2: the key 'text'"),
        ("d.csv", "text,text\nx,y\n", "line 1: the header has 'text' twice"),
    ],
)
async def test_a_key_that_stands_twice_is_named_by_its_line(
    crib: Any, name: str, content: str, says: str
) -> None:
    (crib.root / name).write_text(content)
    seen = await crib.call("inspect_dataset", dataset_source=name)
    assert seen["first_not_readable"][0].startswith(says)


@pytest.mark.parametrize(
    ("row", "key"),
    [
        (
            {"id": "a long identifier", "messages": [{"role": "user", "content": "Hi" * 9}]},
            "messages",
        ),
        ({"question": "Why?", "answer": "Because.", "url": "x"}, "question+answer"),
        ({"instruction": "Add", "input": "", "output": "Two and more"}, "instruction+output"),
        ({"title": "A", "body": "Some words.", "tags": ["one", "two", "three"]}, "body"),
    ],
)
async def test_chats_and_answers_are_texts(crib: Any, row: dict[str, Any], key: str) -> None:
    seen = await crib.call("inspect_dataset", dataset_source=write(crib, "rows.jsonl", row))
    assert seen["text_key"] == key


@pytest.mark.data
@pytest.mark.parametrize("name", PACKED)
async def test_a_packed_file_is_cleaned_and_nothing_else_is_changed(
    workshop: Any, name: str
) -> None:
    (workshop.root / name).write_bytes(PACKED[name](LINES.encode()))
    _report, written = await run(workshop, name, CLEANS)
    assert written.read_text() == CLEANED


@pytest.mark.data
async def test_each_message_of_a_chat_is_cleaned_and_whole_chats_are_compared(
    workshop: Any,
) -> None:
    def chat(*texts: str) -> dict[str, Any]:
        return {"t": 1, "messages": [{"role": "x", "content": text, "n": 2} for text in texts]}

    source = write(
        workshop, "chat.jsonl", chat("Hi\u00a0you", "Yes."), chat("Ho", "Yes."), chat("ho", "yes.")
    )
    report, written = await run(workshop, source, CLEANS, "messages")
    rows = [json.loads(line) for line in written.read_text().splitlines()]
    assert rows == [chat("Hi you", "Yes."), chat("Ho", "Yes.")]
    assert report["kept"][0]["text"] == "Hi you\nYes."


@pytest.mark.data
async def test_an_answer_that_many_questions_have_is_no_repetition(workshop: Any) -> None:
    rows = [{"question": each, "answer": "Yes"} for each in ("A\u00a0?", "B?", "b?")]
    _report, written = await run(
        workshop, write(workshop, "qa.jsonl", *rows), CLEANS, "question+answer"
    )
    assert [json.loads(line)["question"] for line in written.read_text().splitlines()] == [
        "A ?",
        "B?",
    ]


@pytest.mark.data
async def test_texts_shorter_than_a_shingle_are_compared_exactly(workshop: Any) -> None:
    near = {"tokenization": "character", "num_bands": 25, "num_rows_per_band": 10}
    texts = ("cat", "dog", "Cat", "A text about knots.", "A text about knots!")
    source = write(workshop, "near.jsonl", *({"text": text} for text in texts))
    _report, written = await run(workshop, source, {"document_minhash_deduplicator": near})
    left = [json.loads(line)["text"] for line in written.read_text().splitlines()]
    assert left == ["cat", "dog", "A text about knots."]


@pytest.mark.data
@pytest.mark.parametrize("form", ["jsonl", "json", "parquet"])
async def test_values_of_any_type_reach_parquet_and_come_back(workshop: Any, form: str) -> None:
    rows = [
        {"text": "One", "n": 18446744073709551615, "at": "2026-01-02", "m": 1, "o": {"a": [1]}},
        {"text": "Two", "m": "two", "zip": "00501"},
    ]
    source = write(workshop, "types.jsonl", *rows)
    keep = {"text_length_filter": {"min_len": 1}}
    await run(workshop, source, keep, to="types.parquet")
    _report, written = await run(workshop, "types.parquet", keep, to=f"back.{form}")
    seen = await workshop.call("inspect_dataset", dataset_source=f"back.{form}")
    [first, second] = seen["sample"]
    assert (first["n"], first["at"], first["o"]) == (2**64 - 1, "2026-01-02", {"a": [1]})
    assert (first["m"], second["m"], second["zip"]) == ("1", '"two"', "00501")
    assert written.exists()


@pytest.mark.data
async def test_a_column_of_a_table_is_a_number_for_the_operator_that_names_it(
    workshop: Any,
) -> None:
    (workshop.root / "scores.csv").write_text("text,score\na,10\nb,9\nc,100\nd,2\n")
    highest = {"field_key": "score", "topk": 2}
    _report, written = await run(workshop, "scores.csv", {"topk_specified_field_selector": highest})
    rows = [json.loads(line) for line in written.read_text().splitlines()]
    assert {row["score"] for row in rows} == {"100", "10"}


@pytest.mark.data
async def test_the_files_of_a_folder_are_read_in_the_order_of_their_names(workshop: Any) -> None:
    (workshop.root / "parts").mkdir()
    for name in ("b", "a"):
        (workshop.root / "parts" / f"{name}.jsonl").write_text(f'{{"text": "{name}", "n": 1.0}}\n')
    _report, written = await run(workshop, "parts", {"text_length_filter": {"min_len": 1}})
    assert written.read_text() == '{"text": "a", "n": 1.0}\n{"text": "b", "n": 1.0}\n'


@pytest.mark.data
async def test_what_an_operator_changes_in_place_is_written(workshop: Any) -> None:
    source = write(workshop, "place.jsonl", {"text": "hello", "meta": {"n": 1}, "l": [1]})
    changes = {"lambda_str": 'lambda row: (row["meta"].update(n=2) or row)'}
    recipe = Recipe(
        dataset=DatasetSpec(dataset_path=source, export_path="placed.jsonl", text_keys=["text"]),
        process=ProcessSpec(operators=[Step(name="python_lambda_mapper", params=changes)]),
    )
    plan = Plan(user_intent="Try it", recipe=recipe).to_yaml()
    (workshop.root / "plan.yaml").write_text(plan)
    await workshop.call("apply_recipe", plan_path="plan.yaml", confirm=True)
    written = (workshop.root / "placed.jsonl").read_text()
    assert written == '{"text": "hello", "meta": {"n": 2}, "l": [1]}\n'


@pytest.mark.data
async def test_chats_that_differ_in_a_call_of_a_tool_are_not_the_same(workshop: Any) -> None:
    def call(city: str) -> dict[str, Any]:
        return {"messages": [{"content": None, "tool_calls": [{"city": city}]}, {"content": "Hi"}]}

    source = write(workshop, "calls.jsonl", call("Rome"), call("Oslo"), call("Rome"))
    report, _written = await run(workshop, source, CLEANS, "messages")
    assert report["rows_out"] == 2


@pytest.mark.data
@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"a.jsonl": '{"text": "x"}\n', "b.csv": "text\ny\n"}, "several forms (a.jsonl, b.csv)"),
        ({"a.csv": "text,text\nx,y\n"}, "the header has 'text' twice"),
    ],
)
async def test_a_folder_that_would_lose_rows_is_refused(
    workshop: Any, files: dict[str, str], says: str
) -> None:
    (workshop.root / "several").mkdir(exist_ok=True)
    for each in (workshop.root / "several").iterdir():
        each.unlink()
    for name, content in files.items():
        (workshop.root / "several" / name).write_text(content)
    with pytest.raises(AssertionError, match="cannot be read") as refused:
        await run(workshop, "several", CLEANS)
    assert says in str(refused.value)


@pytest.mark.data
async def test_notes_next_to_the_rows_of_a_folder_are_passed_over(workshop: Any) -> None:
    (workshop.root / "hub").mkdir()
    (workshop.root / "hub" / "data.jsonl").write_text('{"text": "A", "n": 1.10}\n')
    (workshop.root / "hub" / "README.md").write_text("Notes")
    _report, written = await run(workshop, "hub", CLEANS)
    assert written.read_text() == '{"text": "A", "n": 1.10}\n'


@pytest.mark.data
async def test_cells_that_an_operator_reads_as_numbers_reach_parquet_as_they_stand(
    workshop: Any,
) -> None:
    (workshop.root / "prices.csv").write_text("text,price\na,12345678901234567.10\nb,\nc,2\n")
    dear = {"specified_numeric_field_filter": {"field_key": "price", "min_value": 1}}
    await run(workshop, "prices.csv", dear, to="prices.parquet")
    seen = await workshop.call("inspect_dataset", dataset_source="prices.parquet")
    assert [row["price"] for row in seen["sample"]] == ["12345678901234567.10", "2"]


async def test_a_table_is_not_broken_where_the_look_ends_in_a_cell(crib: Any) -> None:
    cell = "a line of a cell\n" * 200
    rows = "".join(f'{at},"{cell}"\n' for at in range(900))
    (crib.root / "cells.csv").write_text(f"id,text\n{rows}")
    seen = await crib.call("inspect_dataset", dataset_source="cells.csv")
    assert seen["not_readable"] == 0


@pytest.mark.data
async def test_a_report_is_never_written_over_what_is_read(workshop: Any) -> None:
    (workshop.root / "out.report.md").write_text("A text of some words.")
    asked = {"dataset_source": "out.report.md", "output_path": "out.jsonl", "overwrite": True}
    kind, told = await workshop.failure("clean_dataset", **asked)
    assert kind == "conflict"
    assert "which is what is read" in told
    assert (workshop.root / "out.report.md").read_text() == "A text of some words."


BIG = '{"z": 1.10, "text": "one", "n": 123456789012345678901234567890}\n{"text": "2", "n": 5}\n'


@pytest.mark.data
async def test_rows_come_out_of_an_operator_of_ones_own_as_they_stood(workshop: Any) -> None:
    (workshop.root / "own.py").write_text(OWN)
    (workshop.root / "big.jsonl").write_text(BIG)
    shout: dict[str, dict[str, Any]] = {"shout_mapper": {}}
    report, written = await run(workshop, "big.jsonl", shout, custom_operator_paths=["own.py"])
    assert report["engine"] == "direct"
    assert written.read_text() == BIG.splitlines()[0].replace("one", "ONE") + "\n"
    [dropped] = report["dropped"]
    assert (dropped["row"], dropped["text"], dropped["operator"]) == (2, "2", "shout_mapper")
    selects: dict[str, dict[str, Any]] = {"graded_selector": {}}
    _report, written = await run(workshop, "big.jsonl", selects, custom_operator_paths=["own.py"])
    assert written.read_text() == BIG.splitlines()[0] + "\n"


@pytest.mark.data
async def test_a_field_that_appears_late_has_its_values_in_its_rows(workshop: Any) -> None:
    source = write(workshop, "late.jsonl", *({"text": text} for text in ("a", "bb", "c")))
    adds = {"lambda_str": 'lambda row: {**row, "new": 1} if len(row["text"]) > 1 else row'}
    _report, written = await run(workshop, source, {"python_lambda_mapper": adds})
    rows = map(json.loads, written.read_text().splitlines())
    assert [row["new"] for row in rows] == [None, 1, None]


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "content", "step", "says"),
    [
        (
            "big.jsonl",
            BIG,
            {"topk_specified_field_selector": {"field_key": "n", "topk": 1}},
            "cannot compare the values of 'n'",
        ),
        (
            "number.jsonl",
            '{"text": "one two three"}\n{"text": 5}\n',
            {"text_chunk_mapper": {"max_len": 3}},
            "'text' holds other values than texts (int)",
        ),
        ("texts", "caf\u00e9", {"text_length_filter": {}}, "latin.txt is not UTF-8"),
        ("own.jsonl", BIG, {"lost_mapper": {}}, "No module named 'nothing_of_that_name'"),
    ],
)
async def test_a_refusal_names_what_is_wrong(
    workshop: Any, name: str, content: str, step: dict[str, dict[str, Any]], says: str
) -> None:
    more: dict[str, Any] = {"skip_op_error": False}
    if name == "texts":
        (workshop.root / name).mkdir()
        (workshop.root / name / "good.txt").write_text("Words")
        (workshop.root / name / "latin.txt").write_text(content, encoding="latin-1")
    else:
        (workshop.root / name).write_text(content)
    if "lost_mapper" in step:
        (workshop.root / "lost.py").write_text("import nothing_of_that_name")
        more["custom_operator_paths"] = ["lost.py"]
    plan = save(workshop, name, step, **more)
    _kind, told = await workshop.failure("apply_recipe", plan_path=plan, confirm=True)
    assert says in told


async def test_utf_16_without_a_byte_order_mark_is_named(crib: Any) -> None:
    for encoding in ("utf-16-le", "utf-16-be"):
        (crib.root / "wide.jsonl").write_text(LINES, encoding=encoding)
        _kind, told = await crib.failure("inspect_dataset", dataset_source="wide.jsonl")
        assert "UTF-16 without a byte order mark" in told


@pytest.mark.data
async def test_what_is_not_a_number_becomes_null_where_it_is_new(workshop: Any) -> None:
    (workshop.root / "nan.jsonl").write_text('{"text": "a", "n": NaN, "l": [1.0]}\n')
    adds = {"lambda_str": 'lambda row: row["l"].append(float("nan")) or row'}
    _report, written = await run(workshop, "nan.jsonl", {"python_lambda_mapper": adds})
    assert written.read_text() == '{"text": "a", "n": NaN, "l": [1.0, null]}\n'


@pytest.mark.data
@pytest.mark.parametrize("more", [{}, {"open_tracer": False}])
async def test_statistics_of_an_earlier_run_decide_nothing(
    workshop: Any, more: dict[str, Any]
) -> None:
    rows = [{"text": text, "__dj__stats__": {"text_len": 9 - len(text)}} for text in ("Long", "x")]
    source = write(workshop, "stale.jsonl", *rows)
    shortest = {"text_length_filter": {"min_len": 3}}
    _report, written = await run(workshop, source, shortest, **more)
    assert list(map(json.loads, written.read_text().splitlines())) == rows[:1]
    more = {**more, "keep_stats_in_res_ds": True}
    _report, written = await run(workshop, source, shortest, **more)
    assert json.loads(written.read_text()) == {"text": "Long", "__dj__stats__": {"text_len": 4}}


@pytest.mark.data
@pytest.mark.parametrize("key", ["messages", "question+answer"])
async def test_texts_that_dj_process_cannot_read_are_refused(workshop: Any, key: str) -> None:
    row = {"messages": [{"content": "Hi"}], "question": "Why?", "answer": "Because."}
    plan = save(workshop, write(workshop, "rows.jsonl", row), CLEANS, key, open_tracer=False)
    _kind, told = await workshop.failure("apply_recipe", plan_path=plan, confirm=True)
    assert "dj-process, which reads the texts of one field" in told
