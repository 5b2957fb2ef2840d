from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tools.core.errors import ConflictError, InvalidArgumentsError, ToolError, UnavailableError
from tools.data.recipe import DatasetSpec, ProcessSpec, Recipe, Step
from tools.data.running import outputs as outputs_module
from tools.data.running.outputs import Outputs, digest_of, find_outputs
from tools.data.running.staging import Stage, place_folders
from tools.sandbox.files.sandbox import Sandbox


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """The directory of a run, in one that workers see."""
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "rows.jsonl").write_text("{}")
    (tmp_path / "seen" / "run").mkdir(parents=True)
    stage = Stage(Sandbox(tmp_path / "root"), tmp_path / "seen" / "run")
    recipe = Recipe(
        dataset=DatasetSpec(dataset_path="rows.jsonl", export_path="made/out.jsonl"),
        process=ProcessSpec(operators=[Step(name="text_length_filter")]),
    )
    stage.config(recipe)
    return stage


def test_what_a_run_has_written_is_put_beside_its_export_path(tmp_path: Path, stage: Stage) -> None:
    (tmp_path / "root" / "made").mkdir()
    results = tmp_path / "seen" / "run" / "out"
    (results / "parts").mkdir()
    (results / "out.jsonl").write_text("one")
    (results / "parts" / "a.jsonl").write_text("two")
    written = stage.deliver("made/out.jsonl", Outputs())
    assert [each.path for each in written] == ["made/out.jsonl", "made/parts/a.jsonl"]
    assert (tmp_path / "root" / "made" / "parts" / "a.jsonl").read_text() == "two"


def test_what_has_come_there_meanwhile_is_not_replaced(tmp_path: Path, stage: Stage) -> None:
    (tmp_path / "root" / "made").mkdir()
    (tmp_path / "root" / "made" / "out.jsonl").write_text("another run's")
    (tmp_path / "seen" / "run" / "out" / "out.jsonl").write_text("one")
    with pytest.raises(ConflictError):
        stage.deliver("made/out.jsonl", Outputs())
    assert (tmp_path / "root" / "made" / "out.jsonl").read_text() == "another run's"
    stage.deliver("made/out.jsonl", find_outputs(stage.sandbox, ["made/out.jsonl"]))
    assert (tmp_path / "root" / "made" / "out.jsonl").read_text() == "one"


def test_a_link_to_nothing_at_the_place_of_a_result_is_not_followed(
    tmp_path: Path, stage: Stage
) -> None:
    made = tmp_path / "root" / "made"
    made.mkdir()
    (tmp_path / "seen" / "run" / "out" / "out.jsonl").write_text("one")
    outputs = find_outputs(stage.sandbox, ["made/out.jsonl"])
    (made / "out.jsonl").symlink_to("elsewhere.jsonl")
    with pytest.raises(ConflictError, match=r"made/out\.jsonl is a link"):
        stage.deliver("made/out.jsonl", outputs)
    with pytest.raises(ConflictError, match=r"made/out\.jsonl is a link"):
        find_outputs(stage.sandbox, ["made/out.jsonl"])
    assert [each.name for each in made.iterdir()] == ["out.jsonl"]


def test_folders_for_new_files_are_placed_and_those_that_are_read_stay(tmp_path: Path) -> None:
    mapper, words = {"p": 1, "save_dir": "out.media"}, {"flagged_words_dir": "in2"}
    process = [{"image_blur_mapper": mapper}, {"flagged_words_filter": words}, {"other": None}]
    place_folders({"process": process}, tmp_path)
    assert mapper == {"p": 1, "save_dir": str(tmp_path / "made" / "image_blur_mapper")}
    assert words == {"flagged_words_dir": "in2"}


def test_a_name_of_a_file_starts_no_line_of_a_question(stage: Stage) -> None:
    made = stage.sandbox.root / "made"
    made.mkdir()
    (made / 'a\nwrites: "other.jsonl"').write_text("one")
    (line,) = find_outputs(stage.sandbox, ["made"]).describe(stage.sandbox)
    assert line.startswith('replaces: "made/a\\nwrites: ')


def test_more_files_than_are_listed_are_never_taken_for_all(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs_module, "MOST_FILES", 1)
    folder = stage.sandbox.root / "made"
    folder.mkdir()
    (folder / "a.jsonl").write_text("one")
    assert set(find_outputs(stage.sandbox, ["made"]).replaced) == {"made/a.jsonl"}
    (folder / "b.jsonl").write_text("two")
    for look in (find_outputs, lambda sandbox, paths: digest_of(sandbox, *paths)):
        with pytest.raises(InvalidArgumentsError, match="more than 1 files"):
            look(stage.sandbox, ["made"])


def test_links_of_a_worker_lead_nowhere(tmp_path: Path, stage: Stage) -> None:
    (tmp_path / "root" / "made").mkdir()
    (tmp_path / "secret").write_text("secret")
    results = tmp_path / "seen" / "run" / "out"
    (results / "out.jsonl").symlink_to(tmp_path / "secret")
    (results / "more").symlink_to(tmp_path, target_is_directory=True)
    assert stage.deliver("made/out.jsonl", Outputs()) == []
    assert not list((tmp_path / "root" / "made").iterdir())


def test_what_finds_no_room_is_unavailable_with_its_name(
    tmp_path: Path, full_disk: Callable[[int], AbstractContextManager[None]]
) -> None:
    root, seen = tmp_path / "root", tmp_path / "seen"
    root.mkdir()
    seen.mkdir()
    (root / "large.jsonl").write_bytes(bytes(100_000))
    stage = Stage(Sandbox(root), seen)
    with full_disk(1_000), pytest.raises(UnavailableError, match=r"^large\.jsonl") as raised:
        stage.take("large.jsonl")
    assert "TMPDIR" in raised.value.next_actions[0]


@pytest.mark.parametrize(
    ("planted", "meant", "target"),
    [("in1.jsonl", "kept", "in1.jsonl"), ("media", ".", "media/0/a.jsonl")],
)
def test_nothing_is_written_through_a_link_that_a_worker_has_left(
    tmp_path: Path, planted: str, meant: str, target: str
) -> None:
    root, seen, mine = tmp_path / "root", tmp_path / "seen", tmp_path / "mine"
    for folder in (root, seen / "run", mine):
        folder.mkdir(parents=True)
    (root / "a.jsonl").write_text("a")
    (mine / "kept").write_text("mine")
    (seen / "run" / planted).symlink_to(mine / meant)
    stage = Stage(Sandbox(root), seen / "run")
    with pytest.raises(ToolError):
        stage.copy("a.jsonl", seen / "run" / target)
    assert [(each.name, each.read_text()) for each in mine.iterdir()] == [("kept", "mine")]
