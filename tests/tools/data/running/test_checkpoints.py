import os
from pathlib import Path
from typing import Any

import pytest

from tools.data.recipe import DatasetSpec, ProcessSpec, Recipe, Step
from tools.data.running import checkpoints as module
from tools.data.running.checkpoints import Checkpoints, keys_of
from tools.data.running.staging import Stage
from tools.sandbox.files.sandbox import Sandbox


def keys(root: Path, directory: Path, *steps: str, **dataset: Any) -> list[str]:
    """The keys of a run of these operators on what is beneath the root."""
    directory.mkdir()
    stage = Stage(Sandbox(root), directory)
    given = {"dataset_path": "rows.jsonl", "export_path": "out.jsonl", **dataset}
    process = ProcessSpec(
        operators=[Step(name=name) for name in steps], custom_operator_paths=["own"]
    )
    config = stage.config(Recipe(dataset=DatasetSpec(**given), process=process))
    return keys_of(config, directory, stage.content, "release")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "own").mkdir(parents=True)
    (root / "rows.jsonl").write_text('{"text": "x"}\n')
    (root / "own" / "a.py").write_text("one")
    (root / "own" / "b.py").write_text("two")
    return root


def left(root: Path, rows: bytes = b"rows") -> tuple[Sandbox, str]:
    """What a worker has left."""
    folder = root / "run" / "kept"
    folder.mkdir(parents=True)
    (folder / "rows").write_bytes(rows)
    (folder / "told.json").write_bytes(b"{}")
    return Sandbox(root), "run/kept"


def test_a_recipe_has_the_keys_of_another_as_far_as_they_do_the_same(
    tmp_path: Path, root: Path
) -> None:
    first = keys(root, tmp_path / "1", "a", "b", "c")
    assert len(set(first)) == 3
    assert keys(root, tmp_path / "2", "a", "b", "d", export_path="o.parquet")[:2] == first[:2]
    (root / "rows.jsonl").rename(root / "moved.jsonl")
    assert keys(root, tmp_path / "3", "a", "b", "c", dataset_path="moved.jsonl") == first
    assert keys(root, tmp_path / "4", "b", "a", dataset_path="moved.jsonl")[1] != first[1]


@pytest.mark.parametrize("changed", ["rows.jsonl", "own/a.py", "own/c.py"])
def test_other_content_has_other_keys(tmp_path: Path, root: Path, changed: str) -> None:
    first = keys(root, tmp_path / "1", "a", "b")
    (root / changed).write_text("other")
    assert not set(keys(root, tmp_path / "2", "a", "b")) & set(first)


def test_other_ways_of_reading_have_other_keys(tmp_path: Path, root: Path) -> None:
    first = keys(root, tmp_path / "1", "a", "b")
    assert not set(keys(root, tmp_path / "2", "a", "b", text_keys=["x"])) & set(first)


def test_what_was_put_is_got_until_it_is_removed(tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path / "kept")
    assert not kept.get("key", tmp_path / "0")
    assert kept.put("key", *left(tmp_path))
    assert kept.get("key", tmp_path / "1")
    assert (tmp_path / "1" / "rows").read_bytes() == b"rows"
    assert [each.stat().st_mode & 0o077 for each in kept.path.iterdir()] == [0]
    kept.remove("key")
    assert not list(kept.path.iterdir())


def test_links_of_a_worker_lead_nowhere(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    kept = Checkpoints(tmp_path / "kept")
    stage, folder = left(tmp_path / "seen")
    rows = tmp_path / "seen" / folder / "rows"
    rows.unlink()
    rows.symlink_to(tmp_path / "secret")
    assert not kept.put("key", stage, folder)
    assert not list(kept.path.iterdir())


def test_old_ones_go_and_those_that_are_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 100)
    kept = Checkpoints(tmp_path / "kept")
    stage, folder = left(tmp_path, b"r" * 38)
    for at, key in enumerate(("a", "b", "c")):
        assert kept.put(key, stage, folder)
        os.utime(kept.path / key, (2**31 + at, 2**31 + at))
    assert sorted(each.name for each in kept.path.iterdir()) == ["b", "c"]
    os.utime(kept.path / "c", (1, 1))
    assert kept.put("d", stage, folder)
    assert sorted(each.name for each in kept.path.iterdir()) == ["b", "d"]
    (tmp_path / folder / "rows").write_bytes(b"r" * 101)
    assert not kept.put("e", stage, folder)


def test_old_ones_go_when_another_run_begins(tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path / "kept")
    kept.prune()
    assert kept.put("key", *left(tmp_path))
    os.utime(kept.path / "key", (1, 1))
    kept.prune()
    assert not list(kept.path.iterdir())
    kept.clear()
    assert not kept.path.exists()


def test_a_full_disk_leaves_no_part(tmp_path: Path, full_disk: Any) -> None:
    kept = Checkpoints(tmp_path / "kept")
    stage, folder = left(tmp_path, b"r" * 10_000)
    with full_disk(1_000), pytest.raises(OSError, match="File too large"):
        kept.put("key", stage, folder)
    assert not list(kept.path.iterdir())
