import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp_types import ElicitResult

pytestmark = pytest.mark.data

TEXTS = (
    "The bowline makes a loop that does not slip, even under load.",
    "THE BOWLINE makes a loop that does not slip, even under load.",
    "The bowline makes a loop that does not slip, even under load!",
    "no",
    "-- == ** == -- ** == -- == ** == -- ** == --",
    "A sourdough loaf needs flour, water, salt and a lively starter.",
)


def write(root: Path, name: str, texts: tuple[str, ...] = TEXTS) -> str:
    path = root / name
    if name.endswith(".csv"):
        path.write_text("id,body\n" + "".join(f'{at},"{t}"\n' for at, t in enumerate(texts)))
    elif name.endswith(".jsonl"):
        path.write_text("".join(json.dumps({"body": text}) + "\n" for text in texts))
    else:
        path.mkdir()
        for at, text in enumerate(texts):
            (path / f"{at}.txt").write_text(text)
    return name


def texts_of(path: Path) -> list[str]:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [next(value for key, value in row.items() if key in {"body", "text"}) for row in rows]


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl", "folder"])
async def test_garbled_and_repeated_rows_go_and_a_report_says_where(
    workshop: Any, name: str
) -> None:
    write(workshop.root, name)
    done = await workshop.call("clean_dataset", dataset_source=name)
    stem = name.partition(".")[0]
    output = workshop.root / f"{stem}.clean.jsonl"
    if name == "folder":  # read in any order
        assert len(texts_of(output)) == 3
    else:
        assert texts_of(output) == [TEXTS[0], TEXTS[2], TEXTS[5]]
    assert list(json.loads(output.read_text().splitlines()[0])) == (
        ["id", "body"] if name == "rows.csv" else ["body" if name == "rows.jsonl" else "text"]
    )  # no statistics
    told = (workshop.root / done["report_path"]).read_text()
    assert "6 rows in, 3 rows out." in told
    assert "| document_deduplicator | 4 | 3 | 1 |" in told
    assert f"| {output.name} | {output.stat().st_size} | `{sha256(output)}` |" in told
    if name != "folder":
        assert sha256(workshop.root / name) in told
    for each in workshop.root.glob(f"{stem}*"):
        each.rename(each.with_name(f"was-{name}-{each.name}"))


@pytest.mark.parametrize(
    "line", [b'{"body": broken', b"[1]", b'{"body": "\xff"}', b'{"body": "\\ud800"}']
)
async def test_lines_that_hold_no_row_are_left_out_and_told(workshop: Any, line: bytes) -> None:
    source = write(workshop.root, "bad.jsonl")
    path = workshop.root / source
    path.write_bytes(line + b"\n" + path.read_bytes())
    done = await workshop.call("clean_dataset", dataset_source=source, overwrite=True)
    assert texts_of(workshop.root / "bad.clean.jsonl") == [TEXTS[0], TEXTS[2], TEXTS[5]]
    assert (done["rows_in"], done["steps"][0]["operator"]) == (7, "(not readable)")
    assert done["steps"][0]["errors"][0].startswith("line 1: ")
    assert {"row": 5, "text": "no", "operator": "text_length_filter"} in done["dropped"]
    assert "load_jsonl_lenient: true\n" in (workshop.root / done["recipe_path"]).read_text()
    told = (workshop.root / done["report_path"]).read_text()
    assert "| (not readable) | 7 | 6 | 1 |" in told
    assert "(not readable) `skipped 1 batch or row because of errors: line 1: " in told


async def test_rows_of_a_table_that_do_not_fit_are_left_out_and_told(workshop: Any) -> None:
    source = write(workshop.root, "unfit.csv")
    path = workshop.root / source
    path.write_bytes(path.read_bytes().replace(b"\n", b"\n9,a,b\n8,\xff\n", 1))
    done = await workshop.call("clean_dataset", dataset_source=source)
    assert texts_of(workshop.root / "unfit.clean.jsonl") == [TEXTS[0], TEXTS[2], TEXTS[5]]
    assert (done["rows_in"], done["steps"][0]["operator"]) == (8, "(not readable)")
    recipe = (workshop.root / done["recipe_path"]).read_text()
    assert "load_dataset_kwargs:\n  on_bad_lines: skip\n" in recipe
    again = await workshop.call("apply_recipe", plan_path=done["recipe_path"], confirm=True)
    assert again["steps"][0]["errors"] == done["steps"][0]["errors"]


async def test_of_a_folder_those_files_are_read_that_were_looked_at(workshop: Any) -> None:
    folder = workshop.root / write(workshop.root, "mixed")
    for at in range(10):
        (folder / f"{at}.py").write_text(f"print('A program, and no text, of the number {at}')")
        (folder / f"{at}.jsonl").write_text('{"n": 1}\n')
    seen = await workshop.call("inspect_dataset", dataset_source="mixed")
    done = await workshop.call("clean_dataset", dataset_source="mixed")
    assert seen["rows"] == done["rows_in"] == len(TEXTS)
    again = await workshop.call("apply_recipe", plan_path=done["recipe_path"], confirm=True)
    assert again["rows_in"] == len(TEXTS)


async def test_what_is_wrong_with_a_line_is_told_alike_before_and_after(workshop: Any) -> None:
    source = write(workshop.root, "alike.jsonl")
    path = workshop.root / source
    path.write_bytes(b'{"body": "cut off he\n' + path.read_bytes())
    seen = await workshop.call("inspect_dataset", dataset_source=source)
    done = await workshop.call("clean_dataset", dataset_source=source)
    assert done["steps"][0]["errors"][0].startswith("line 1: Unterminated string")
    assert done["steps"][0]["errors"][0] in str(seen)


async def test_the_recipe_that_was_run_gives_the_same_again(workshop: Any) -> None:
    source = write(workshop.root, "again.jsonl")
    done = await workshop.call("clean_dataset", dataset_source=source)
    output = workshop.root / "again.clean.jsonl"
    before = output.read_bytes()
    output.unlink()
    await workshop.call("apply_recipe", plan_path=done["recipe_path"], confirm=True)
    assert output.read_bytes() == before


async def test_a_changed_recipe_that_is_run_again_has_its_report_anew(workshop: Any) -> None:
    source = write(workshop.root, "changed.jsonl")
    done = await workshop.call("clean_dataset", dataset_source=source)
    recipe = workshop.root / done["recipe_path"]
    last = "- document_deduplicator:\n    lowercase: true\n"
    recipe.write_text(recipe.read_text().replace(last, ""))
    before = (workshop.root / done["report_path"]).read_text()
    await workshop.call("apply_recipe", plan_path=done["recipe_path"], dry_run=True)
    assert (workshop.root / done["report_path"]).read_text() == before
    again = await workshop.call("apply_recipe", plan_path=f"./{done['recipe_path']}", confirm=True)
    assert again["rows_out"] > done["rows_out"]
    told = (workshop.root / done["report_path"]).read_text()
    assert sha256(workshop.root / "changed.clean.jsonl") in told
    assert f"{again['rows_out']} rows out." in told


async def test_nearly_the_same_texts_go_where_that_is_asked_for(workshop: Any) -> None:
    short = ("red apple pie", "blue car race", "今天天气很好我们去公园散步吧")
    source = write(workshop.root, "near.jsonl", (*short, TEXTS[0], TEXTS[2]))
    await workshop.call("clean_dataset", dataset_source=source, work=["dedupe_near"])
    assert texts_of(workshop.root / "near.clean.jsonl") == [*short, TEXTS[0]]


async def test_another_form_has_the_same_rows(workshop: Any) -> None:
    source = write(workshop.root, "form.csv")
    arguments = {"dataset_source": source, "work": []}
    await workshop.call("clean_dataset", output_path="form.parquet", **arguments)
    await workshop.call(
        "clean_dataset", dataset_source="form.parquet", work=[], output_path="back.jsonl"
    )
    assert texts_of(workshop.root / "back.jsonl") == list(TEXTS)


async def test_statistics_are_kept_where_that_is_asked_for(workshop: Any) -> None:
    source = write(workshop.root, "stats.jsonl")
    await workshop.call("clean_dataset", dataset_source=source, keep_stats=True)
    row = json.loads((workshop.root / "stats.clean.jsonl").read_text().splitlines()[0])
    assert row["__dj__stats__"]["text_len"] == len(TEXTS[0])


async def test_nothing_that_is_there_is_replaced_unasked(workshop: Any) -> None:
    source = write(workshop.root, "there.jsonl")
    (workshop.root / "there.clean.report.md").write_text("mine")
    kind, told = await workshop.failure("clean_dataset", dataset_source=source)
    assert kind == "conflict"
    assert "overwrite=true" in told
    assert not (workshop.root / "there.clean.jsonl").exists()
    await workshop.call("clean_dataset", dataset_source=source, overwrite=True)
    assert (workshop.root / "there.clean.report.md").read_text() != "mine"


async def cleaned(crib: Any, source: str, edit: Any = None, **more: Any) -> tuple[str, list[str]]:
    """What comes of a call that replaces files, and what a person was asked about it."""
    asked = list[str]()

    async def agree(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        if edit:
            edit()
        return ElicitResult(action="accept", content={"answer": "once"})

    async with Client(crib.app.server, mode="legacy", elicitation_callback=agree) as client:
        given = {"dataset_source": source, "overwrite": True, **more}
        result = await client.call_tool("clean_dataset", given)
    return str(result.content), asked


async def test_a_person_is_asked_before_a_file_is_replaced_and_undo_brings_it_back(
    workshop: Any, undo_last: Any
) -> None:
    source = write(workshop.root, "asked.jsonl")
    told, asked = await cleaned(workshop, source, dry_run=True)
    assert ("Nothing was written" in told, asked) == (True, [])
    told, asked = await cleaned(workshop, source)  # there is nothing to replace
    assert ("Wrote asked.clean.jsonl" in told, asked) == (True, [])
    (workshop.root / "asked.clean.jsonl").write_text("mine\n")
    told, asked = await cleaned(workshop, source)
    assert "Wrote asked.clean.jsonl" in told
    assert "reads: asked.jsonl (6 rows, " in asked[0]
    for name in ("asked.clean.jsonl", "asked.clean.recipe.yaml", "asked.clean.report.md"):
        assert f"replaces: {name} (" in asked[0]
    undo_last(workshop)
    assert (workshop.root / "asked.clean.jsonl").read_text() == "mine\n"


@pytest.mark.parametrize("digest", [{}, {"digest": "0" * 64}])
async def test_a_file_that_changed_while_a_person_was_asked_is_not_replaced(
    workshop: Any, digest: dict[str, str]
) -> None:
    source = write(workshop.root, f"edited{len(digest)}.jsonl")
    target = workshop.root / f"edited{len(digest)}.clean.jsonl"
    target.write_text("shown\n")
    told, asked = await cleaned(workshop, source, lambda: target.write_text("precious\n"), **digest)
    assert len(asked) == 1
    assert "conflict" in told
    assert target.read_text() == "precious\n"


async def test_a_dry_run_tells_the_recipe_and_writes_nothing(workshop: Any) -> None:
    source = write(workshop.root, "dry.jsonl")
    told = await workshop.text("clean_dataset", dataset_source=source, dry_run=True)
    assert "dropped by text_length_filter: row 4: no" in told
    assert "\nprocess:\n" in told
    assert [each.name for each in workshop.root.glob("dry*")] == ["dry.jsonl"]
