"""Images, sounds and videos: files that rows name, beneath the root."""

import json
import wave
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tools.data.recipe import DatasetSpec, Plan, ProcessSpec, Recipe, Step

WIDE, TINY = "pictures/wide.png", "pictures/tiny.png"
LONG, SHORT = "sounds/long.wav", "sounds/short.wav"

OWN = """\
from os.path import getsize

from data_juicer.ops.base_op import OPERATORS, Mapper

@OPERATORS.register_module("measure_mapper")
class Measure(Mapper):
    def process_single(self, sample):
        sample["text"] = f"{getsize(sample['images'][0])} bytes"
        return sample
"""


def furnish(root: Path) -> None:
    """A data set in a folder, pictures beside it, and sounds beneath the root."""
    for folder in ("set/pictures", "sounds"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for name, size in ((WIDE, (200, 50)), (TINY, (8, 8))):
        Image.new("RGB", size, (200, 30, 30)).save(root / "set" / name)
    for name, seconds in ((LONG, 2), (SHORT, 1)):
        with wave.open(str(root / name), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(8_000)
            file.writeframes(bytes(16_000 * seconds))
    write_rows(root, (WIDE, LONG), (TINY, SHORT))


def write_rows(root: Path, *files: tuple[str, str]) -> None:
    rows = [
        {"text": f"Row {at}.", "images": [image], "audios": [sound]}
        for at, (image, sound) in enumerate(files)
    ]
    (root / "set" / "raw.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def save(
    root: Path, operators: dict[str, dict[str, Any]], export: str = "set/out.jsonl", **system: Any
) -> str:
    recipe = Recipe(
        dataset=DatasetSpec(dataset_path="set/raw.jsonl", export_path=export),
        process=ProcessSpec(
            operators=[Step(name=name, params=params) for name, params in operators.items()]
        ),
        system=system,
    )
    plan = Plan(user_intent="Try it", recipe=recipe, approval_required=False)
    (root / "plan.yaml").write_text(plan.to_yaml())
    return "plan.yaml"


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.data
@pytest.mark.parametrize(
    ("operator", "params"),
    [
        ("image_shape_filter", {"min_width": 50}),
        ("image_size_filter", {"min_size": "100"}),
        ("image_aspect_ratio_filter", {"min_ratio": 2, "max_ratio": 5}),
        ("audio_size_filter", {"min_size": "20kb"}),
    ],
)
async def test_files_that_rows_name_are_read_and_named_as_before(
    workshop: Any, operator: str, params: dict[str, Any]
) -> None:
    furnish(workshop.root)
    plan = save(workshop.root, {operator: params})
    report = await workshop.call("apply_recipe", plan_path=plan, confirm=True)
    assert (report["engine"], report["rows_in"], report["rows_out"]) == ("direct", 2, 1)
    [row] = rows(workshop.root / "set/out.jsonl")
    assert (row["images"], row["audios"]) == ([WIDE], [LONG])


@pytest.mark.data
@pytest.mark.parametrize("params", [{}, {"save_dir": "new/out.media"}])
async def test_new_files_come_beside_the_result_which_names_them(
    workshop: Any, params: dict[str, Any]
) -> None:
    furnish(workshop.root)
    operators = {"image_blur_mapper": {"p": 1.0, **params}}
    plan = save(workshop.root, operators, "new/out.jsonl")
    for _ in range(2):  # the next run replaces them
        report = await workshop.call("apply_recipe", plan_path=plan, confirm=True)
        wide = "out.media/image_blur_mapper/wide.png"
        assert f"new/{wide}" in [each["path"] for each in report["written"]]
        [row, _other] = rows(workshop.root / "new/out.jsonl")
        assert row["images"] == [wide]
        assert row["audios"] == [LONG]
        assert row["__dj__source_file__"] == [f"set/{WIDE}"]
        with Image.open(workshop.root / "new" / wide) as made:
            assert made.size == (200, 50)
        assert len(list((workshop.root / "new/out.media/image_blur_mapper").iterdir())) == 2


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "kind", "says"),
    [
        ("pictures/none.png", "invalid_arguments", "pictures/none.png"),
        ("../../elsewhere.png", "outside_sandbox", "elsewhere.png"),
        ("/etc/hostname", "outside_sandbox", "/etc/hostname"),
        ("https://example.org/a.png", "invalid_arguments", "without a network"),
    ],
)
async def test_files_that_are_not_there_or_outside_are_refused_before_the_run(
    workshop: Any, name: str, kind: str, says: str
) -> None:
    furnish(workshop.root)
    write_rows(workshop.root, (WIDE, LONG), (name, LONG))
    plan = save(workshop.root, {"image_shape_filter": {}}, "refused.jsonl")
    failed, told = await workshop.failure("apply_recipe", plan_path=plan, confirm=True)
    assert failed == kind
    assert says in told
    assert not (workshop.root / "refused.jsonl").exists()


@pytest.mark.data
@pytest.mark.parametrize(
    ("operators", "says"),
    [
        ({"audio_duration_filter": {}}, "audio_duration_filter needs"),
        ({"video_duration_filter": {}}, "video_duration_filter needs"),
        ({"image_deduplicator": {}}, "`image_deduplicator`: it needs the package"),
    ],
)
async def test_what_an_operator_lacks_is_told_and_nothing_is_written(
    workshop: Any, operators: dict[str, dict[str, Any]], says: str
) -> None:
    furnish(workshop.root)
    row = {"text": "One.", "images": [WIDE], "audios": [LONG], "videos": [SHORT]}  # of that name
    (workshop.root / "set" / "raw.jsonl").write_text(json.dumps(row))
    plan = save(workshop.root, operators, "lacking.jsonl")
    kind, told = await workshop.failure("apply_recipe", plan_path=plan, confirm=True)
    assert kind == "unavailable"
    assert says in told
    assert not (workshop.root / "lacking.jsonl").exists()


@pytest.mark.data
async def test_an_operator_of_ones_own_may_read_files_too(workshop: Any) -> None:
    furnish(workshop.root)
    (workshop.root / "own.py").write_text(OWN)
    operators: dict[str, dict[str, Any]] = {"image_shape_filter": {}, "measure_mapper": {}}
    plan = save(workshop.root, operators, "set/own.jsonl", custom_operator_paths=["own.py"])
    report = await workshop.call("apply_recipe", plan_path=plan, confirm=True)
    assert report["engine"] == "direct"
    found = rows(workshop.root / "set/own.jsonl")
    assert [row["images"] for row in found] == [[WIDE], [TINY]]
    sizes = [(workshop.root / "set" / name).stat().st_size for name in (WIDE, TINY)]
    assert [row["text"] for row in found] == [f"{size} bytes" for size in sizes]


@pytest.mark.data
async def test_a_recipe_with_files_that_needs_dj_process_is_refused(workshop: Any) -> None:
    furnish(workshop.root)
    plan = save(workshop.root, {"image_shape_filter": {}}, open_tracer=True)
    kind, told = await workshop.failure("apply_recipe", plan_path=plan, confirm=True)
    assert kind == "invalid_arguments"
    assert "dj-process" in told


@pytest.mark.parametrize(
    ("params", "system", "says"),
    [
        ({"save_dir": "elsewhere"}, {}, "set/out.media"),
        ({}, {"executor_type": "ray"}, "executor_type: ray does not get the files"),
    ],
)
async def test_what_recipes_with_files_cannot_have_is_refused_first(
    crib: Any, params: dict[str, Any], system: dict[str, Any], says: str
) -> None:
    furnish(crib.root)
    plan = save(crib.root, {"image_blur_mapper": params}, **system)
    kind, told = await crib.failure("apply_recipe", plan_path=plan, confirm=True)
    assert kind == "invalid_arguments"
    assert says in told
