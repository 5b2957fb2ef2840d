"""Runs that are ended between two operators, and go on from there."""

import json
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tools.core.result import ToolResult

pytestmark = pytest.mark.data

PLAN = """\
# Clean it
# approval_required: false
dataset_path: {source}
export_path: {export}
text_keys: [text]
load_jsonl_lenient: true
skip_op_error: {skip}
{more}
process:
- whitespace_normalization_mapper:
- text_length_filter: {{min_len: 20}}
- alphanumeric_filter: {{min_ratio: 0.5}}
- document_minhash_deduplicator: {{num_bands: 42, num_rows_per_band: 6}}
- character_repetition_filter: {{max_ratio: {most}}}
"""
LAST = "alphanumeric_filter"
"""The last operator that a run has ended with when it is ended."""

OWN = "custom_operator_paths: [own.py]"
"""A key that loads code of the user's, whose runs go on like others."""


def write_rows(root: Path, name: str = "raw.jsonl", rows: int = 1_500) -> None:
    kinds = ("of rope and\u3000knots \U0001f600", "#### ---- ==== ++++", "of bread")
    lines = [
        json.dumps(
            {
                "id": at,
                "text": None if at % 50 == 7 else f"Some words {at} {kinds[at % 3]} " * (at % 5),
                "meta": {"of": at / 7} if at % 2 else {"tags": ["a", None], "n": 2**40 + at},
                "at": "2026-01-02T03:04:05",
            }
        )
        for at in range(rows)
    ]
    lines[5:5] = ['{"text": broken', "[1]"]
    (root / name).write_text("\n".join(lines) + "\n")


def plan(root: Path, export: str, more: str = "", **changed: Any) -> str:
    given = {"source": "raw.jsonl", "skip": "false", "most": 0.9, **changed}
    (root / export).unlink(missing_ok=True)  # else a person is asked
    (root / "plan.yaml").write_text(PLAN.format(export=export, more=more, **given))
    return "plan.yaml"


@pytest.fixture
async def crib(workshop: Any) -> AsyncIterator[Any]:
    """The product, with a worker that waits, which keeps what each operator leaves."""
    write_rows(workshop.root, rows=3)
    await workshop.call("apply_recipe", plan_path=plan(workshop.root, "first.jsonl"), confirm=True)
    checkpoints = workshop.app.machine.data.checkpoints
    usual, checkpoints.after = checkpoints.after, 0
    yield workshop
    checkpoints.after = usual


def ignore(message: str) -> None:
    """Does nothing with what is told."""


async def run(crib: Any, plan_path: str, hear: Callable[[str], None] = ignore, **more: Any) -> Any:
    """Runs a recipe, and hears how far it is."""

    async def report(_done: float, _total: float | None, message: str | None) -> None:
        hear(message or "")
        await anyio.lowlevel.checkpoint()

    context = crib.app.context.reporting(report)
    arguments = {"plan_path": plan_path, **more}
    result: ToolResult = await crib.app.manager.execute("apply_recipe", arguments, context)
    return result


def kept(crib: Any) -> list[Path]:
    path: Path = crib.app.settings.data_dir / "checkpoints"
    return list(path.iterdir()) if path.exists() else []


def told(report: dict[str, Any]) -> dict[str, Any]:
    """What two runs with the same result tell alike."""
    steps = [{**step, "seconds": None} for step in report["steps"]]
    kept_alike = {key: report[key] for key in ("rows_in", "rows_out", "kept", "dropped")}
    return {**kept_alike, "steps": steps}


@asynccontextmanager
async def ended(crib: Any, how: str) -> AsyncIterator[Callable[[str], None]]:
    """Ends a run after its third operator."""
    (warm,) = crib.app.machine.data._idle
    with anyio.CancelScope() as scope:

        def hear(message: str) -> None:
            if not message.startswith("document_minhash_deduplicator"):
                return
            if how == "killed":
                os.kill(warm.worker._process._program.pid, signal.SIGKILL)
            else:
                scope.cancel()

        yield hear
    assert scope.cancelled_caught == (how == "cancelled")


@pytest.mark.parametrize("how", ["killed", "cancelled"])
async def test_a_run_goes_on_after_its_last_whole_operator_and_writes_the_same(
    crib: Any, how: str
) -> None:
    write_rows(crib.root)
    whole = await run(crib, plan(crib.root, "whole.jsonl"))
    assert not whole.is_error, whole.text
    assert not kept(crib)
    again = plan(crib.root, "again.jsonl")
    async with ended(crib, how) as hear:
        failed = await run(crib, again, hear)
        assert failed.is_error
        assert f"it continues after {LAST}" in failed.text
    assert not (crib.root / "again.jsonl").exists()
    assert len(kept(crib)) == 1
    result = await run(crib, again)
    assert result.structured["went_on_after"] == LAST
    assert f"Went on after {LAST}" in result.text
    assert told(result.structured) == told(whole.structured)
    written = (crib.root / "again.jsonl").read_bytes()
    assert written == (crib.root / "whole.jsonl").read_bytes()
    assert not kept(crib)
    (crib.root / "again.jsonl").unlink()


async def test_a_run_that_took_too_long_goes_on(crib: Any) -> None:
    write_rows(crib.root, rows=20_000)
    again = plan(crib.root, "late.jsonl")
    for seconds in (3, 6, 12, 24):  # a busy machine needs the first ones to begin
        late = await run(crib, again, timeout_seconds=seconds)
        assert late.structured["error_type"] == "timeout"
        if "it continues after" in late.text:
            break
    assert "Run it again with the same data: it continues after " in late.text
    result = await run(crib, again)
    assert "went_on_after" in result.structured


@pytest.mark.parametrize("more", ["", OWN])
async def test_an_operator_that_failed_is_corrected_and_the_run_goes_on(
    crib: Any, more: str
) -> None:
    write_rows(crib.root)
    (crib.root / "own.py").write_text("")
    failing = plan(crib.root, "mended.jsonl", more, most="0.9, text_key: body")
    kind, _told = await crib.failure("apply_recipe", plan_path=failing, confirm=True)
    assert kind == "tool_failed"
    mended = plan(crib.root, "mended.jsonl", more)
    report = await crib.call("apply_recipe", plan_path=mended, confirm=True)
    assert report["went_on_after"] == "document_minhash_deduplicator"


@pytest.mark.parametrize("changed", [{"source": "other.jsonl"}, {"skip": "true"}])
async def test_other_data_and_another_recipe_begin_anew(crib: Any, changed: dict[str, str]) -> None:
    write_rows(crib.root)
    write_rows(crib.root, "other.jsonl", rows=1_499)
    async with ended(crib, "killed") as hear:
        await run(crib, plan(crib.root, "anew.jsonl"), hear)
    result = await run(crib, plan(crib.root, "anew.jsonl", **changed))
    assert not result.is_error
    assert "went_on_after" not in result.structured
    await run(crib, plan(crib.root, "anew.jsonl"))


async def test_what_is_kept_and_cannot_be_read_is_passed_over(crib: Any) -> None:
    write_rows(crib.root)
    for name in ("rows", "told.json"):
        async with ended(crib, "killed") as hear:
            await run(crib, plan(crib.root, "passed.jsonl"), hear)
        (directory,) = kept(crib)
        (directory / name).write_bytes(b"\x28\xb5\x2f\xfd")
        result = await run(crib, plan(crib.root, "passed.jsonl"))
        assert not result.is_error, result.text
        assert "went_on_after" not in result.structured
        assert not kept(crib)


async def test_a_short_run_and_a_dry_run_keep_nothing(crib: Any) -> None:
    write_rows(crib.root)
    async with ended(crib, "killed") as hear:
        await run(crib, plan(crib.root, "dry.jsonl"), hear, dry_run=True)
    crib.app.machine.data.checkpoints.after = 60
    await run(crib, plan(crib.root, "first.jsonl", source="raw.jsonl"), dry_run=True)
    async with ended(crib, "killed") as hear:
        await run(crib, plan(crib.root, "short.jsonl"), hear)
    assert not kept(crib)
