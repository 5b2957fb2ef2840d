from __future__ import annotations

from pathlib import Path

import pytest

from tools.core.errors import InvalidArgumentsError, PermissionDeniedError, ToolError
from tools.data.recipe import DatasetSpec, Executor, ProcessSpec, Recipe, Step, SystemSpec
from tools.data.running.readiness import check_ready
from tools.sandbox.files.sandbox import Sandbox


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    (tmp_path / "raw.jsonl").write_text('{"text": "x"}\n')
    return Sandbox(tmp_path)


def recipe(export: str, executor: Executor = "default") -> Recipe:
    return Recipe(
        dataset=DatasetSpec(dataset_path="raw.jsonl", export_path=export),
        process=ProcessSpec(operators=[Step(name="text_length_filter")]),
        system=SystemSpec(executor_type=executor),
    )


@pytest.mark.parametrize(
    ("export", "kind"),
    [
        (".git/hooks/out.jsonl", PermissionDeniedError),
        ("raw.jsonl/out.jsonl", InvalidArgumentsError),
        ("folder", InvalidArgumentsError),
    ],
)
def test_a_result_that_cannot_be_written_is_refused_and_a_dry_run_writes_none(
    sandbox: Sandbox, export: str, kind: type[ToolError]
) -> None:
    (sandbox.root / "folder").mkdir()
    with pytest.raises(kind, match=export):
        check_ready(recipe(export), sandbox, dry_run=False)
    assert check_ready(recipe(export), sandbox, dry_run=True).dry_run


def test_a_cluster_writes_its_parts_into_a_folder_that_is_new_or_empty(sandbox: Sandbox) -> None:
    (sandbox.root / "folder").mkdir()
    for export in ("folder", "new/folder"):
        check_ready(recipe(export, "ray"), sandbox, dry_run=False)
    with pytest.raises(PermissionDeniedError, match="protected"):
        check_ready(recipe(".git/hooks", "ray"), sandbox, dry_run=False)
    assert sorted(each.name for each in sandbox.root.iterdir()) == ["folder", "raw.jsonl"]
