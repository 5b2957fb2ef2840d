from typing import Any, get_args

import anyio
import pytest

from tools.data.development import OwnKind
from tools.data.running.environment import DataEnvironment

FIX: dict[str, Any] = {
    "intent": 'Writes "dates" as ISO 8601, C:\\ and $name included',
    "operator_name": "fix_dates",
    "output_dir": "own/dates",
}
RUN_TESTS = (
    "import sys; sys.path.insert(0, '.'); import test_{0} as tests;"
    "[each() for name, each in vars(tests).items() if name.startswith('test_it')]"
)


@pytest.mark.parametrize("kind", get_args(OwnKind))
async def test_an_operator_begins_with_files_that_can_be_read(crib: Any, kind: str) -> None:
    made = await crib.call("develop_operator", **FIX, operator_type=kind)
    name = f"fix_dates_{kind}"

    assert (made["operator_name"], made["checked"]) == (name, "syntax")
    assert made["files"] == [
        f"own/dates/{name}.py",
        f"own/dates/test_{name}.py",
        "own/dates/samples.jsonl",
        "own/dates/README.md",
    ]
    source = (crib.root / made["files"][0]).read_text(encoding="utf-8")
    compile(source, name, "exec")
    assert f'@OPERATORS.register_module("{name}")' in source
    readme = (crib.root / "own/dates/README.md").read_text(encoding="utf-8")
    assert FIX["intent"] in readme
    assert f"- own/dates/{name}.py" in readme


async def test_a_name_that_says_its_kind_is_kept(crib: Any) -> None:
    made = await crib.call("develop_operator", **FIX | {"operator_name": "fix_dates_mapper"})

    assert (made["operator_name"], made["class_name"]) == ("fix_dates_mapper", "FixDatesMapper")


@pytest.mark.parametrize("name", ["Fix Dates", "../x", "1st", "fix__dates", "ünïcode"])
async def test_what_is_no_name_is_refused(crib: Any, name: str) -> None:
    kind, told = await crib.failure("develop_operator", **FIX | {"operator_name": name})

    assert kind == "invalid_arguments"
    assert repr(name) in told


async def test_an_operator_of_the_release_is_not_begun_again(crib: Any) -> None:
    kind, _ = await crib.failure(
        "develop_operator", **FIX | {"operator_name": "clean_html"}, operator_type="mapper"
    )

    assert kind == "conflict"


async def test_where_one_file_is_there_none_is_written(crib: Any) -> None:
    folder = crib.root / "own" / "dates"
    folder.mkdir(parents=True)
    (folder / "README.md").write_text("mine", encoding="utf-8")

    kind, _ = await crib.failure("develop_operator", **FIX)

    assert kind == "conflict"
    assert [each.name for each in folder.iterdir()] == ["README.md"]


async def test_without_data_juicer_a_trial_is_unavailable_and_nothing_is_written(crib: Any) -> None:
    kind, told = await crib.failure("develop_operator", **FIX, smoke_check=True)

    assert kind == "unavailable"
    assert "data setup" in told
    assert list(crib.root.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", get_args(OwnKind))
async def test_an_operator_runs_as_it_is_begun_and_passes_its_own_test(
    workshop: Any, data_juicer: DataEnvironment, kind: str
) -> None:
    place = FIX | {"output_dir": f"own/{kind}", "operator_type": kind}
    made = await workshop.call("develop_operator", **place, smoke_check=True)

    assert (made["checked"], made.get("failure")) == ("run", None)
    assert not (workshop.root / f"own/{kind}/tried.jsonl").exists()
    done = await anyio.run_process(
        [str(data_juicer.python()), "-c", RUN_TESTS.format(made["operator_name"])],
        cwd=workshop.root / "own" / kind,
        check=False,
    )
    assert done.returncode == 0, done.stderr
