import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp_types import ElicitResult

from server.cli.call import TerminalApprover
from tools.data.recipe import (
    DatasetMixture,
    DatasetSource,
    DatasetSpec,
    Plan,
    ProcessSpec,
    Recipe,
    Step,
)
from tools.data.running.environment import DataEnvironment

TEXTS = (
    "The bowline makes a loop that does not slip,\u00a0even under load.",
    "the bowline makes a loop that does not slip, even under load.",
    "Too short.",
    None,
    "A sourdough loaf needs flour, water, salt and a lively starter.",
    "%%%% #### ---- ==== ++++ //// **** @@@@ &&&& ^^^^ ~~~~",
)
CLEANING: dict[str, dict[str, Any]] = {
    "whitespace_normalization_mapper": {},
    "punctuation_normalization_mapper": {},
    "text_length_filter": {"min_len": 20},
    "alphanumeric_filter": {"min_ratio": 0.5},
    "document_deduplicator": {"lowercase": True},
}
SIMILAR: dict[str, dict[str, Any]] = {
    "clean_links_mapper": {},
    "character_repetition_filter": {"max_ratio": 0.5},
    "document_minhash_deduplicator": {"num_bands": 42, "num_rows_per_band": 6},
    "range_specified_field_selector": {"field_key": "id", "lower_rank": 1, "upper_rank": 50},
}


OWN = """
from data_juicer.ops.base_op import OPERATORS, Mapper

@OPERATORS.register_module("shout_mapper")
class ShoutMapper(Mapper):
    def process_single(self, sample):
        sample[self.text_key] = sample[self.text_key].upper()
        return sample
"""


def write_rows(path: Path, texts: tuple[str | None, ...] = TEXTS) -> None:
    rows = ({"id": at, "text": text, "meta": {"of": "us"}} for at, text in enumerate(texts))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def save(  # noqa: PLR0913  # one parameter for each part of a plan
    root: Path,
    operators: Mapping[str, Mapping[str, Any]],
    *,
    asks: bool = False,
    source: str = "raw.jsonl",
    export: str = "out.jsonl",
    own: list[str] | None = None,
    **system: Any,
) -> str:
    """Saves a plan; returns its path."""
    recipe = Recipe(
        dataset=DatasetSpec(dataset_path=source, export_path=export, text_keys=["text"]),
        process=ProcessSpec(
            operators=[Step(name=name, params=dict(each)) for name, each in operators.items()],
            custom_operator_paths=own,
        ),
        system=system,
    )
    plan = Plan(user_intent="Clean it", recipe=recipe, approval_required=asks)
    (root / "plan.yaml").write_text(plan.to_yaml(), encoding="utf-8")
    return "plan.yaml"


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


async def test_without_data_juicer_it_is_unavailable_with_the_command(crib: Any) -> None:
    write_rows(crib.root / "raw.jsonl")
    kind, told = await crib.failure("apply_recipe", plan_path=save(crib.root, CLEANING))
    assert kind == "unavailable"
    assert "data setup`" in told
    assert not (crib.root / "out.jsonl").exists()


@pytest.mark.data
async def test_a_plan_that_requires_approval_is_not_run_without(workshop: Any) -> None:
    write_rows(workshop.root / "raw.jsonl")
    plan = save(workshop.root, CLEANING, asks=True)
    kind, told = await workshop.failure("apply_recipe", plan_path=plan)
    assert kind == "approval_required"
    assert "confirm=true" in told


async def confirmed(crib: Any, plan: str) -> tuple[str, list[str]]:
    """What comes of a call that a person is to be asked about, and what they were asked."""
    asked = list[str]()

    async def agree(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={"answer": "once"})

    async with Client(crib.app.server, mode="legacy", elicitation_callback=agree) as client:
        result = await client.call_tool("apply_recipe", {"plan_path": plan, "confirm": True})
    return str(result.content), asked


@pytest.mark.parametrize(
    ("operators", "places", "says"),
    [
        ({"text_lenth_filter": {}}, {}, "did you mean text_length_filter?"),
        ({"text_length_filter": {"min_len": "five"}}, {}, "min_len"),
        (CLEANING, {"source": "other.jsonl"}, "other.jsonl"),
        (CLEANING, {"export": "raw.jsonl"}, "never replaced"),
        (CLEANING, {"export": ".git/hooks/out.jsonl"}, "is protected"),
        (CLEANING, {"export": "raw.jsonl/out.jsonl"}, "should be a directory"),
        (CLEANING, {}, "data setup`"),  # there is no Data-Juicer
    ],
)
async def test_nobody_is_asked_about_a_plan_that_cannot_be_run(
    crib: Any, operators: dict[str, dict[str, Any]], places: dict[str, Any], says: str
) -> None:
    write_rows(crib.root / "raw.jsonl")
    told, asked = await confirmed(crib, save(crib.root, operators, asks=True, **places))
    assert says in told
    assert asked == []


async def test_a_plan_that_a_rule_asks_about_is_not_read_before_the_answer(open_crib: Any) -> None:
    async with open_crib(policy__ask=["apply_recipe(private/**)"]) as crib:
        (crib.root / "private").mkdir()
        (crib.root / "private/plan.yaml").write_text("no: recipe")
        told, asked = await confirmed(crib, "private/plan.yaml")
    assert "private/plan.yaml is not a recipe" in told
    assert len(asked) == 1


@pytest.mark.data
async def test_a_rule_about_other_plans_leaves_a_confirmed_one_its_data(
    open_crib: Any, data_juicer: DataEnvironment
) -> None:
    async with open_crib(policy__ask=["apply_recipe(private/**)"]) as crib:
        (crib.app.settings.data_dir / "data-juicer").symlink_to(data_juicer.path)
        write_rows(crib.root / "raw.jsonl")
        told, asked = await confirmed(crib, save(crib.root, CLEANING, asks=True))
    assert "6 rows in, 2 out" in told
    assert len(asked) == 1


PRECIOUS = "what nobody has a copy of\n"


def aim_elsewhere(root: Path) -> None:
    plan = (root / "plan.yaml").read_text()
    (root / "plan.yaml").write_text(plan.replace("bound.jsonl", "precious.jsonl"))


def edit_code(root: Path) -> None:
    with (root / "own" / "shout.py").open("a", encoding="utf-8") as file:
        file.write("# and more\n")


def create_target(root: Path) -> None:
    (root / "bound.jsonl").write_text(PRECIOUS)


def link_target(root: Path) -> None:
    (root / "bound.jsonl").symlink_to("precious.jsonl")


EDITS = [aim_elsewhere, edit_code, create_target, link_target]


@pytest.fixture
def bound(workshop: Any) -> str:
    """A plan with code of its own that writes a new file, next to a file that it must not touch."""
    (workshop.root / "own").mkdir(exist_ok=True)
    (workshop.root / "own" / "shout.py").write_text(OWN, encoding="utf-8")
    (workshop.root / "bound.jsonl").unlink(missing_ok=True)
    (workshop.root / "precious.jsonl").write_text(PRECIOUS)
    write_rows(workshop.root / "raw.jsonl")
    return save(workshop.root, {"shout_mapper": {}}, asks=True, export="bound.jsonl", own=["own"])


def check_untouched(root: Path) -> None:
    assert (root / "precious.jsonl").read_text() == PRECIOUS
    target = root / "bound.jsonl"
    assert not target.exists() or target.read_text() == PRECIOUS


def once(edit: Callable[[Path], None], root: Path, asked: list[str]) -> Any:
    """A person who agrees, while whose first form is open something is edited."""

    async def agree(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        if len(asked) == 1:
            edit(root)
        return ElicitResult(action="accept", content={"answer": "once"})

    return agree


@pytest.mark.data
@pytest.mark.parametrize("edit", EDITS)
async def test_what_is_approved_is_what_runs(
    workshop: Any, bound: str, edit: Callable[[Path], None]
) -> None:
    asked = list[str]()
    agree = once(edit, workshop.root, asked)
    async with Client(workshop.app.server, mode="legacy", elicitation_callback=agree) as client:
        result = await client.call_tool("apply_recipe", {"plan_path": bound, "confirm": True})
    assert "conflict: plan.yaml, code that it names or a file that it" in str(result.content)
    check_untouched(workshop.root)
    for said in (
        'reads: "raw.jsonl (6 rows, ',
        'writes: "bound.jsonl"',
        "shout_mapper {}",
        'runs code of: "own"',
    ):
        assert said in asked[0]
    assert "replaces" not in asked[0]


@pytest.mark.data
@pytest.mark.parametrize("edit", EDITS)
async def test_a_client_that_calls_again_with_the_answer_is_asked_about_what_changed(
    workshop: Any, bound: str, edit: Callable[[Path], None]
) -> None:
    asked = list[str]()

    async def decline_the_second(context: Any, params: Any) -> ElicitResult:
        if asked:
            asked.append(params.message)
            return ElicitResult(action="accept", content={"answer": "no"})
        return await once(edit, workshop.root, asked)(context, params)  # type: ignore[no-any-return]  # a callback

    server = workshop.app.server
    async with Client(server, mode="2026-07-28", elicitation_callback=decline_the_second) as client:
        result = await client.call_tool("apply_recipe", {"plan_path": bound, "confirm": True})
    assert result.is_error
    assert len(asked) == 2
    assert asked[0] != asked[1]
    check_untouched(workshop.root)


@pytest.mark.data
async def test_a_digest_of_another_plan_is_refused_before_anybody_is_asked(
    workshop: Any, bound: str, mode: str
) -> None:
    shown = (workshop.root / "plan.yaml").read_bytes()
    aim_elsewhere(workshop.root)
    other = hashlib.sha256((workshop.root / "plan.yaml").read_bytes()).hexdigest()
    (workshop.root / "plan.yaml").write_bytes(shown)
    asked = list[str]()
    agree = once(aim_elsewhere, workshop.root, asked)
    async with Client(workshop.app.server, mode=mode, elicitation_callback=agree) as client:
        given = {"plan_path": bound, "confirm": True, "digest": other}
        result = await client.call_tool("apply_recipe", given)
    assert "conflict" in str(result.content)
    assert asked == []
    check_untouched(workshop.root)


@pytest.mark.data
@pytest.mark.parametrize("edit", EDITS)
async def test_what_a_program_has_approved_is_what_runs(
    workshop: Any, bound: str, edit: Callable[[Path], None]
) -> None:
    asked = list[str]()
    agree = once(edit, workshop.root, asked)
    code = "await tools.apply_recipe(plan_path='plan.yaml', confirm=True)"
    async with Client(workshop.app.server, mode="legacy", elicitation_callback=agree) as client:
        result = await client.call_tool("run_code", {"code": code})
    assert asked
    assert "conflict" in str(result.content), result.content
    check_untouched(workshop.root)


@pytest.mark.data
@pytest.mark.parametrize("edit", EDITS)
async def test_what_is_approved_at_a_terminal_is_what_runs(
    workshop: Any, bound: str, edit: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `toolcrib call` asks, by a line that is typed after the edit."""
    read, write = os.pipe()

    async def type_yes(stdin: Any) -> None:
        edit(workshop.root)
        os.write(write, b"y\n")
        await anyio.lowlevel.checkpoint()

    monkeypatch.setattr(anyio, "wait_readable", type_yes)
    with os.fdopen(read) as typed:
        monkeypatch.setattr("sys.stdin", typed)
        own = workshop.app.context
        context = replace(own, link=replace(own.link, approver=TerminalApprover()))
        given = {"plan_path": bound, "confirm": True}
        result = await workshop.app.manager.execute("apply_recipe", given, context)
        os.close(write)
    assert result.structured["error_type"] == "conflict"
    check_untouched(workshop.root)


@pytest.mark.data
async def test_a_job_refuses_a_target_that_came_to_exist_while_it_ran(workshop: Any) -> None:
    write_rows(workshop.root / "raw.jsonl")
    (workshop.root / "appears.jsonl").unlink(missing_ok=True)
    plan = save(workshop.root, CLEANING, export="appears.jsonl")

    async def create(done: float, total: float | None, message: str | None) -> None:
        if message and message.startswith("document_deduplicator"):
            (workshop.root / "appears.jsonl").write_text(PRECIOUS)

    context = workshop.app.context.reporting(create)
    result = await workshop.app.manager.execute("apply_recipe", {"plan_path": plan}, context)
    assert result.structured["error_type"] == "conflict", result.text
    assert "appears.jsonl has come to exist since the run was checked" in result.text
    assert (workshop.root / "appears.jsonl").read_text() == PRECIOUS


@pytest.mark.data
@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"export": "there.jsonl"}, "it replaces there.jsonl"),
        ({"operators": {"shout_mapper": {}}, "own": ["own"]}, "it runs code that the plan brings"),
        (
            {"operators": {"python_lambda_mapper": {"lambda_str": "lambda x: x"}}},
            "it runs code that the plan brings",
        ),
        ({"operators": {"text_length_filter": {}}, "executor_type": "ray"}, "runs on a cluster"),
    ],
)
async def test_a_plan_cannot_lift_a_question_by_what_it_says(
    workshop: Any, bound: str, more: dict[str, Any], why: str
) -> None:
    (workshop.root / "there.jsonl").write_text(PRECIOUS)
    more = {"operators": CLEANING, "export": "unasked.jsonl", **more}
    plan = save(workshop.root, more.pop("operators"), asks=False, **more)
    kind, told = await workshop.failure("apply_recipe", plan_path=plan)
    assert kind == "approval_required"
    assert why in told
    assert (workshop.root / "there.jsonl").read_text() == PRECIOUS


@pytest.mark.data
async def test_a_question_names_the_file_that_is_replaced_and_undo_brings_it_back(
    workshop: Any, undo_last: Any
) -> None:
    write_rows(workshop.root / "raw.jsonl")
    before = '{"text": "Mine"}\n' * 3
    (workshop.root / "there.jsonl").write_text(before)
    told, asked = await confirmed(workshop, save(workshop.root, CLEANING, export="there.jsonl"))
    assert "6 rows in, 2 out" in told
    assert "replaces: there.jsonl (3 rows, 51 bytes)" in asked[0]
    assert (workshop.root / "there.jsonl").read_text() != before
    undo_last(workshop)
    assert (workshop.root / "there.jsonl").read_text() == before


@pytest.mark.parametrize(
    "export",
    ["set/out.jsonl", "set/more/out.jsonl", "set/../set/out.jsonl", "in/out.jsonl", "set.jsonl"],
)
async def test_a_result_inside_what_is_read_is_refused(crib: Any, export: str) -> None:
    """The last one has its new files in a folder that is read."""
    (crib.root / "set").mkdir()
    write_rows(crib.root / "set" / "a.jsonl")
    (crib.root / "in").symlink_to("set")
    source = "set"
    if export == "set.jsonl":
        source = "set.media"
        (crib.root / "set").rename(crib.root / "set.media")
    recipe = Recipe(
        dataset=DatasetSpec(
            dataset=DatasetMixture(
                configs=[DatasetSource(path="raw.jsonl"), DatasetSource(path=f"./{source}/")]
            ),
            export_path=export,
        ),
        process=ProcessSpec(operators=[Step(name="text_length_filter")]),
    )
    write_rows(crib.root / "raw.jsonl")
    plan = Plan(user_intent="Grow", recipe=recipe, approval_required=False)
    (crib.root / "plan.yaml").write_text(plan.to_yaml())
    kind, told = await crib.failure("apply_recipe", plan_path="plan.yaml")
    assert kind == "conflict"
    assert f"into './{source}/', which is what is read" in told
    checked = await crib.call("plan_validate", plan=plan.model_dump(exclude_none=True))
    assert "which is what is read" in " ".join(checked["errors"])


async def test_what_it_reads_is_never_replaced(crib: Any) -> None:
    write_rows(crib.root / "raw.jsonl")
    plan = save(crib.root, CLEANING, export="./raw.jsonl")
    kind, told = await crib.failure("apply_recipe", plan_path=plan)
    assert kind == "conflict"
    assert "raw.jsonl" in told


@pytest.mark.data
async def test_a_run_tells_what_each_operator_did_and_writes_what_is_left(workshop: Any) -> None:
    write_rows(workshop.root / "raw.jsonl")
    report = await workshop.call(
        "apply_recipe", plan_path=save(workshop.root, CLEANING), confirm=True
    )
    assert (report["rows_in"], report["rows_out"], report["engine"]) == (6, 2, "direct")
    assert [(step["operator"], step["rows_in"], step["rows_out"]) for step in report["steps"]] == [
        ("(no text)", 6, 5),
        ("whitespace_normalization_mapper", 5, 5),
        ("punctuation_normalization_mapper", 5, 5),
        ("text_length_filter", 5, 4),
        ("alphanumeric_filter", 4, 3),
        ("document_deduplicator", 3, 2),
    ]
    assert {row["row"]: row["operator"] for row in report["dropped"]} == {
        2: "document_deduplicator",
        3: "text_length_filter",
        4: "(no text)",
        6: "alphanumeric_filter",
    }
    assert rows(workshop.root / "out.jsonl") == [
        {"id": 0, "text": str(TEXTS[0]).replace("\u00a0", " "), "meta": {"of": "us"}},
        {"id": 4, "text": TEXTS[4], "meta": {"of": "us"}},
    ]


@pytest.mark.data
async def test_a_dry_run_writes_nothing(workshop: Any) -> None:
    write_rows(workshop.root / "raw.jsonl")
    plan = save(workshop.root, CLEANING, asks=True, export="dry.jsonl")
    report = await workshop.call("apply_recipe", plan_path=plan, dry_run=True)
    assert (report["rows_out"], report["written"]) == (2, [])
    assert not (workshop.root / "dry.jsonl").exists()


@pytest.mark.data
async def test_a_person_who_agrees_has_it_run(workshop: Any) -> None:
    write_rows(workshop.root / "raw.jsonl")
    plan = save(workshop.root, CLEANING, asks=True, export="agreed.jsonl")
    await workshop.call("apply_recipe", plan_path=plan, confirm=True)
    assert len(rows(workshop.root / "agreed.jsonl")) == 2


@pytest.mark.data
@pytest.mark.parametrize(
    ("operators", "export"),
    [(CLEANING, "a.jsonl"), (SIMILAR, "b.jsonl"), (CLEANING, "c.parquet"), (CLEANING, "d.json")],
)
async def test_operators_called_directly_write_what_dj_process_writes(
    workshop: Any, operators: dict[str, dict[str, Any]], export: str
) -> None:
    texts = tuple(f"{text or ''} {'again ' * (at % 7 + 5)}" for at, text in enumerate(TEXTS * 40))
    write_rows(workshop.root / "raw.jsonl", texts)
    plan = save(workshop.root, operators, export=f"direct/{export}")
    direct = await workshop.call("apply_recipe", plan_path=plan, confirm=True)
    # A key that changes no row, and that only the program heeds.
    plan = save(workshop.root, operators, export=f"program/{export}", open_tracer=False)
    program = await workshop.call("apply_recipe", plan_path=plan, confirm=True)
    assert (direct["engine"], program["engine"]) == ("direct", "dj-process")
    assert 0 < direct["rows_out"] < direct["rows_in"]
    told = [
        [(step["operator"], step["rows_in"], step["rows_out"]) for step in report["steps"]]
        for report in (direct, program)
    ]
    assert told[0] == told[1]
    written = [workshop.root / folder / export for folder in ("direct", "program")]
    if not export.endswith("parquet"):  # which names its writer's types
        assert written[0].read_bytes() == written[1].read_bytes()
    assert [each.name for each in (workshop.root / "program").glob("*_stats*")] == []


@pytest.mark.data
@pytest.mark.parametrize("more", [{}, {"open_tracer": False}])
async def test_an_array_of_json_holds_more_than_a_batch_of_rows(
    workshop: Any, more: dict[str, Any]
) -> None:
    write_rows(workshop.root / "raw.jsonl", tuple(f"Row {at} of many." for at in range(1_001)))
    operators: dict[str, dict[str, Any]] = {"text_length_filter": {"min_len": 1}}
    plan = save(workshop.root, operators, export="many.json", **more)
    await workshop.call("apply_recipe", plan_path=plan, confirm=True)
    written = json.loads((workshop.root / "many.json").read_text())
    assert [row["id"] for row in written] == list(range(1_001))


BROKEN = '{"text": "A whole row of some words."}\n\n{"text": broken\n[1]\n{"text": "x"}\n'


@pytest.mark.data
@pytest.mark.parametrize("more", [{}, {"open_tracer": False}])
async def test_lines_that_hold_no_row_are_left_out_and_told_where_that_is_asked_for(
    workshop: Any, more: dict[str, Any]
) -> None:
    (workshop.root / "raw.jsonl").write_text(BROKEN)
    plan = save(workshop.root, CLEANING, export="lenient.jsonl", load_jsonl_lenient=True, **more)
    report = await workshop.call("apply_recipe", plan_path=plan, confirm=True)
    assert report["engine"] == ("dj-process" if more else "direct")
    assert (report["rows_in"], report["rows_out"]) == (4, 1)
    first = report["steps"][0]
    assert (first["operator"], first["rows_in"], first["rows_out"]) == ("(not readable)", 4, 2)
    assert [each.partition(":")[0] for each in first["errors"]] == ["line 3", "line 4"]
    assert rows(workshop.root / "lenient.jsonl") == [{"text": "A whole row of some words."}]


TABLE = b"""\
id,text
1,A whole row, of some words, unquoted.
2,"A row that goes on
in the next line."

3,caf\xe9 and more words than a few
4,Another whole row of some words.
5,"A quote that is never closed
6,The last whole row of some words.
"""


@pytest.mark.data
@pytest.mark.parametrize("more", [{}, {"open_tracer": False}])
async def test_rows_of_a_table_that_do_not_fit_are_left_out_and_told_where_that_is_asked_for(
    workshop: Any, more: dict[str, Any]
) -> None:
    (workshop.root / "raw.csv").write_bytes(TABLE)
    lenient = {"load_dataset_kwargs": {"on_bad_lines": "skip"}, **more}
    plan = save(workshop.root, CLEANING, source="raw.csv", export="table.jsonl", **lenient)
    report = await workshop.call("apply_recipe", plan_path=plan, confirm=True)
    assert report["engine"] == ("dj-process" if more else "direct")
    assert (report["rows_in"], report["rows_out"]) == (6, 3)
    assert report["steps"][0]["operator"] == "(not readable)"
    assert report["steps"][0]["errors"] == [
        "line 2: 4 fields, and the header has 2",
        "line 6: not all of it is Unicode",
        "line 8: a quote is never closed",
    ]
    assert [row["id"] for row in rows(workshop.root / "table.jsonl")] == ["2", "4", "6"]
    seen = await workshop.call("inspect_dataset", dataset_source="raw.csv")
    assert seen["first_not_readable"] == report["steps"][0]["errors"]


@pytest.mark.data
@pytest.mark.parametrize("more", [{}, {"open_tracer": False}])
async def test_a_row_that_does_not_fit_its_table_is_named_with_what_leaves_it_out(
    workshop: Any, more: dict[str, Any]
) -> None:
    header, _, rest = TABLE.partition(b"\n")
    content = b"".join([header, b"\n", b"0,Long enough\n" * 1_000, rest])  # checked as it runs
    (workshop.root / "raw.csv").write_bytes(content)
    plan = save(workshop.root, CLEANING, source="raw.csv", export="strict.jsonl", **more)
    kind, told = await workshop.failure("apply_recipe", plan_path=plan, confirm=True)
    assert kind == "invalid_arguments"
    assert "raw.csv cannot be read: line 1002: 4 fields, and the header has 2." in told
    assert "{on_bad_lines: skip}" in told.partition("Next: ")[2]


@pytest.mark.data
@pytest.mark.parametrize("more", [{}, {"open_tracer": False}])
@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('[{}{"text": "y"]', "line 1001: Expecting ',' delimiter, character 13"),
        ("[{}3]", "line 1001: value 1001 of its array is not an object"),
        ('{"text": "x"}\n{"text": y}', "line 2: Expecting value, character 10"),
    ],
)
async def test_the_place_where_json_is_broken_is_told(
    workshop: Any, more: dict[str, Any], content: str, says: str
) -> None:
    rows = '{"text": "x"},\n' * 1_000  # beyond these, what is wrong is found as it runs
    (workshop.root / "raw.json").write_text(content.replace("{}", rows, 1))
    plan = save(workshop.root, CLEANING, source="raw.json", export="strict.jsonl", **more)
    kind, told = await workshop.failure("apply_recipe", plan_path=plan, confirm=True)
    assert kind == "invalid_arguments"
    assert says in told


@pytest.mark.data
@pytest.mark.parametrize("more", [{}, {"open_tracer": False}])
async def test_a_line_that_holds_no_row_is_named_with_what_leaves_it_out(
    workshop: Any, more: dict[str, Any]
) -> None:
    (workshop.root / "raw.jsonl").write_text('{"text": "x"}\n' * 1_000 + BROKEN)
    plan = save(workshop.root, CLEANING, export="strict.jsonl", **more)
    kind, told = await workshop.failure("apply_recipe", plan_path=plan, confirm=True)
    assert kind == "invalid_arguments"
    assert "raw.jsonl cannot be read: line 1003: Expecting value, character 10." in told
    assert "load_jsonl_lenient" in told.partition("Next: ")[2]
    assert not (workshop.root / "strict.jsonl").exists()


@pytest.mark.data
@pytest.mark.parametrize(
    ("operators", "kind", "says"),
    [
        ({"text_length_filtre": {}}, "invalid_arguments", "text_length_filter"),
        ({"text_length_filter": {"min_length": 3}}, "invalid_arguments", "min_len"),
        ({"text_length_filter": {"min_len": "ten"}}, "invalid_arguments", "'ten'"),
        ({"text_length_filter": {"text_key": "body"}}, "tool_failed", "body"),
        ({"text_action_filter": {}}, "unavailable", "spacy"),
        # Data-Juicer would skip all rows.
        ({"token_num_filter": {"skip_op_error": True}}, "unavailable", "transformers"),
    ],
)
async def test_a_failure_says_what_it_was_and_replaces_nothing(
    workshop: Any, operators: dict[str, dict[str, Any]], kind: str, says: str
) -> None:
    write_rows(workshop.root / "raw.jsonl")
    (workshop.root / "kept.jsonl").write_text("as it was\n")
    plan = save(workshop.root, operators, export="kept.jsonl", skip_op_error=False)
    failed, told = await workshop.failure("apply_recipe", plan_path=plan, confirm=True)
    assert failed == kind, told
    assert says in told
    assert (workshop.root / "kept.jsonl").read_text() == "as it was\n"


@pytest.mark.data
async def test_a_field_that_no_row_has_is_told_with_those_that_they_have(workshop: Any) -> None:
    rows = '{"body": "Some words"}\n' * 1_001  # more than are looked at before
    (workshop.root / "raw.jsonl").write_text(rows)
    kind, told = await workshop.failure(
        "apply_recipe", plan_path=save(workshop.root, CLEANING), confirm=True
    )
    assert kind == "invalid_arguments"
    assert "'text'" in told
    assert "'body'" in told


@pytest.mark.data
@pytest.mark.parametrize("more", [{}, {"open_tracer": False}])
async def test_a_parquet_file_that_is_broken_inside_is_named_with_what_is_wrong(
    workshop: Any, more: dict[str, Any]
) -> None:
    write_rows(workshop.root / "raw.jsonl", tuple(f"Row {at} of many words." for at in range(999)))
    await workshop.call(
        "apply_recipe", plan_path=save(workshop.root, CLEANING, export="a.parquet"), confirm=True
    )
    content = (workshop.root / "a.parquet").read_bytes()
    middle = len(content) // 2
    broken = content[:100] + bytes(middle - 100) + content[middle:]
    (workshop.root / "a.parquet").write_bytes(broken)
    plan = save(workshop.root, CLEANING, source="a.parquet", **more)
    for told in (
        await workshop.text("apply_recipe", plan_path=plan, confirm=True),
        await workshop.text("inspect_dataset", dataset_source="a.parquet"),
    ):
        assert told.startswith("invalid_arguments: a.parquet cannot be read: ")
        assert "Next: Write or fetch the file again." in told


@pytest.mark.data
async def test_a_run_that_takes_too_long_is_ended(workshop: Any) -> None:
    write_rows(workshop.root / "raw.jsonl", ("Some words that are long enough.",) * 20_000)
    plan = save(workshop.root, CLEANING, export="late.jsonl")
    kind, told = await workshop.failure(
        "apply_recipe", plan_path=plan, timeout_seconds=0.3, confirm=True
    )
    assert kind == "timeout"
    assert "timeout_seconds" in told
    assert not (workshop.root / "late.jsonl").exists()
    write_rows(workshop.root / "raw.jsonl")  # and the next is run as ever
    assert (await workshop.call("apply_recipe", plan_path=plan, confirm=True))["rows_out"] == 2
