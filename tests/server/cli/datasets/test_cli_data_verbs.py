import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tools.data.running.environment import DataEnvironment

Command = Callable[..., Any]
Started = Callable[..., subprocess.Popen[str]]
ROW = '{"text": "The bowline makes a loop that does not slip."}\n'


@pytest.fixture
def set_up(work: Path, data_juicer: DataEnvironment) -> None:
    """The data directory, where Data-Juicer is set up."""
    (work.parent / "data").mkdir()
    (work.parent / "data" / "data-juicer").symlink_to(data_juicer.path)


def test_several_files_are_inspected_without_data_juicer(cli: Command, work: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        (work / name).write_text(ROW * 2)
    ended = cli("data", "inspect", "a.jsonl", "b.jsonl")
    assert ended.code == 0
    assert ended.out.startswith("a.jsonl: jsonl, 2 rows")
    assert "b.jsonl: jsonl, 2 rows" in ended.out
    # No terminal has shown how far it is.
    assert ended.err.splitlines() == [
        f"{name}: jsonl, 2 rows, 114 bytes." for name in ("a.jsonl", "b.jsonl")
    ]


@pytest.mark.parametrize("given", ["../a.jsonl", "link.jsonl"])
def test_a_file_that_lies_elsewhere_is_named_whole(cli: Command, work: Path, given: str) -> None:
    (work.parent / "a.jsonl").write_text(ROW * 2)
    (work / "link.jsonl").symlink_to(work.parent / "a.jsonl")
    ended = cli("data", "inspect", given)
    assert ended.code == 0, ended.err
    assert ended.out.startswith(f"{work / given}: jsonl, 2 rows")


def test_without_data_juicer_nothing_is_cleaned_and_the_command_is_told(
    cli: Command, work: Path
) -> None:
    (work / "a.jsonl").write_text(ROW)
    ended = cli("data", "clean", "a.jsonl")
    assert ended.code == 1
    assert re.search("Next: Run `.*data setup`.", ended.err)
    assert [each.name for each in work.glob("a.*")] == ["a.jsonl"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("inspect", "none.jsonl"), "Next: Call `ls` to see what is there."),
        (
            ("clean", "n.jsonl"),
            "Next: Look at it with `toolcrib data inspect`, and give the --text-",
        ),
        (("clean", "e.jsonl"), "e.jsonl has no rows (0 bytes).\nNext: Give a file with some."),
        (("dedupe", "a.jsonl"), "Give --overwrite to replace it.\nNext: Or give another --output."),
    ],
)
def test_what_to_do_next_is_told_in_the_words_of_the_command(
    cli: Command, work: Path, arguments: tuple[str, ...], says: str
) -> None:
    (work / "a.jsonl").write_text(ROW)
    (work / "e.jsonl").touch()
    (work / "n.jsonl").write_text('{"n": 1}\n')
    (work / "a.deduped.jsonl").write_text("mine")
    ended = cli("data", *arguments)
    assert ended.code == 1
    assert says in ended.err
    for word in ("list_directory", "inspect_dataset", "output_path", "overwrite=true", "text_key"):
        assert word not in ended.err


def test_a_part_that_is_there_is_replaced_with_overwrite(cli: Command, work: Path) -> None:
    (work / "a.jsonl").write_text(ROW)
    (work / "a.test.jsonl").write_text("mine")
    ended = cli("data", "split", "a.jsonl")
    assert ended.code == 1
    assert ended.err.endswith("Next: Give --overwrite to replace it.\n")
    assert cli("data", "split", "a.jsonl", "--overwrite").code == 0


def test_what_a_split_replaced_is_brought_back_by_undo(cli: Command, work: Path) -> None:
    (work / "a.jsonl").write_text(ROW)
    (work / "a.test.jsonl").write_text("mine")
    assert cli("data", "split", "a.jsonl", "--overwrite").code == 0
    assert (work / "a.test.jsonl").read_text() != "mine"
    ended = cli("undo", "--yes", "--root", ".")
    assert ended.code == 0, ended.err
    assert (work / "a.test.jsonl").read_text() == "mine"
    assert not (work / "a.train.jsonl").exists()


@pytest.mark.data
@pytest.mark.usefixtures("set_up")
@pytest.mark.parametrize("command", ["clean", "dedupe", "export"])
def test_what_was_replaced_is_brought_back_by_undo(cli: Command, work: Path, command: str) -> None:
    (work / "a.jsonl").write_text(ROW * 3)
    (work / "out.jsonl").write_text("mine")
    ended = cli("data", command, "a.jsonl", "--output", "out.jsonl", "--overwrite")
    assert ended.code == 0, ended.err
    assert ROW in (work / "out.jsonl").read_text()
    assert cli("undo", "--yes", "--root", ".").code == 0
    assert (work / "out.jsonl").read_text() == "mine"


@pytest.mark.parametrize("command", ["clean", "dedupe", "export"])
@pytest.mark.parametrize("output", ["texts/out.jsonl", "texts/../texts/out.jsonl", "in/out.jsonl"])
def test_an_output_inside_its_own_input_is_refused(
    cli: Command, work: Path, command: str, output: str
) -> None:
    (work / "texts").mkdir()
    (work / "texts" / "a.txt").write_text("The bowline makes a loop that does not slip.")
    (work / "in").symlink_to("texts")
    ended = cli("data", command, "texts", "--output", output)
    assert ended.code == 1
    assert "is what is read and never replaced" in ended.err
    assert [each.name for each in (work / "texts").iterdir()] == ["a.txt"]


def test_rows_that_an_earlier_split_exported_are_replaced_with_overwrite(
    cli: Command, work: Path
) -> None:
    (work / "a.csv").write_text("text\nThe bowline makes a loop.\n")
    (work / "a.rows.jsonl").write_text("mine")
    ended = cli("data", "split", "a.csv")
    assert ended.code == 1
    assert ended.err.endswith("Next: Give --overwrite to replace it.\n")


def test_one_file_that_cannot_be_split_does_not_stop_the_others(cli: Command, work: Path) -> None:
    for name in ("a.jsonl", "b.jsonl", "d.jsonl"):
        (work / name).write_text(ROW)
    (work / "a.test.jsonl").write_text("mine")
    (work / "c.csv").write_text("text\nThe bowline makes a loop.\n")
    (work / "c.rows.jsonl").write_text("mine")
    ended = cli("data", "split", "a.jsonl", "b.jsonl", "c.csv", "d.jsonl")
    assert ended.code == 1
    assert "a.test.jsonl already exists" in ended.err
    assert "c.rows.jsonl already exists" in ended.err
    for name in ("b", "d"):
        assert (work / f"{name}.train.jsonl").exists()
    assert not (work / "a.train.jsonl").exists()


def test_the_help_of_dedupe_says_that_rows_without_a_text_go(cli: Command) -> None:
    assert "Drop rows without a text" in cli("data", "dedupe", "--help").out


def test_what_runs_have_kept_goes_with_data_juicer(cli: Command, work: Path) -> None:
    kept = work.parent / "data" / "checkpoints" / "key"
    kept.mkdir(parents=True)
    assert cli("data", "remove").code == 0
    assert not kept.parent.exists()


def test_a_file_is_split_by_shares(cli: Command, work: Path) -> None:
    (work / "a.jsonl").write_text("".join(ROW.replace("loop", f"loop {at}") for at in range(200)))
    ended = cli("data", "split", "a.jsonl", "--parts", "train=0.8,dev=0.1,test=0.1")
    assert ended.code == 0, ended.err
    lines = [
        len((work / f"a.{part}.jsonl").read_text().splitlines())
        for part in ("train", "dev", "test")
    ]
    assert sum(lines) == 200
    assert lines[0] > 100


def test_a_split_is_run_again_by_its_recipe_where_its_data_is(
    cli: Command, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "a.jsonl").write_text("".join(ROW.replace("loop", f"loop {at}") for at in range(50)))
    assert cli("data", "split", "a.jsonl", "--parts", "x=0.5,y=0.5", "--seed", "7").code == 0
    before = (work / "a.x.jsonl").read_bytes()
    assert str(work) not in (work / "a.split.recipe.yaml").read_text()
    moved = work.rename(work.with_name("moved"))
    monkeypatch.chdir(moved)
    (moved / "a.x.jsonl").unlink()
    again = ("data", "split", "--recipe", "a.split.recipe.yaml")
    assert "Give --overwrite" in cli(*again).err
    ended = cli(*again, "--overwrite")
    assert ended.code == 0, ended.err
    assert (moved / "a.x.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    "arguments", [(), ("a.jsonl", "--recipe", "r.yaml"), ("--recipe", "r.yaml", "--seed", "0")]
)
def test_a_split_is_told_by_files_or_by_a_recipe(
    cli: Command, work: Path, arguments: tuple[str, ...]
) -> None:
    for name in ("a.jsonl", "r.yaml"):
        (work / name).write_text(ROW)
    assert cli("data", "split", *arguments).code == 2


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ("train", "'train' is not NAME=SHARE"),
        ("train=much", "'train=much' is not NAME=SHARE"),
        ("tr/ain=0.5", "needs a plain name"),
        ("train=0", "needs a plain name, and a share up to 1"),
        ("a=0.1", "two parts or more; for example a=0.1,rest=0.9"),
        ("a=0.5,a=0.5", "'a' is named twice"),
        ("a=0.1,b=0.1", "add up to 0.2, not to 1; for example a=0.5,b=0.5"),
        ("a=0.9,b=0.9", "add up to 1.8, not to 1; for example a=0.5,b=0.5"),
    ],
)
def test_shares_that_make_no_split_are_refused_with_what_to_type(
    cli: Command, work: Path, parts: str, says: str
) -> None:
    (work / "a.jsonl").write_text(ROW)
    ended = cli("data", "split", "a.jsonl", "--parts", parts)
    assert ended.code == 2
    assert says in " ".join(re.sub("[│╭╮╰╯─]", " ", ended.err).split())
    assert [each.name for each in work.glob("a.*")] == ["a.jsonl"]


def test_an_output_of_another_form_is_a_wrong_usage(cli: Command, work: Path) -> None:
    (work / "a.jsonl").write_text(ROW)
    ended = cli("data", "export", "a.jsonl", "--output", "a.txt")
    assert ended.code == 2
    assert ".parquet" in ended.err


@pytest.mark.data
@pytest.mark.usefixtures("set_up")
def test_a_recipe_moves_with_its_data(
    cli: Command, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "a.jsonl").write_text(ROW * 3)
    ended = cli("data", "dedupe", "a.jsonl")
    assert "Wrote a.deduped.jsonl, " in ended.out, ended.err
    assert str(work) not in (work / "a.deduped.report.md").read_text()
    moved = work.rename(work.with_name("moved"))
    monkeypatch.chdir(moved)
    for made in ("jsonl", "report.md"):
        (moved / f"a.deduped.{made}").unlink()
    ended = cli("call", "apply_recipe", "plan_path=a.deduped.recipe.yaml", "--root", ".")
    assert ended.code == 0, ended.err
    assert (moved / "a.deduped.jsonl").read_text() == ROW


@pytest.mark.data
@pytest.mark.usefixtures("set_up")
def test_files_are_deduplicated_and_exported(cli: Command, work: Path) -> None:
    (work / "a.jsonl").write_text(ROW * 3)
    ended = cli("data", "dedupe", "a.jsonl")
    assert ended.code == 0, ended.err
    assert (work / "a.deduped.jsonl").read_text() == ROW
    assert cli("data", "export", "a.deduped.jsonl", "--to", "parquet").code == 0
    assert (work / "a.deduped.export.parquet").read_bytes().startswith(b"PAR1")
    assert cli("data", "export", "a.deduped.jsonl", "--to", "json").code == 0
    recipes = sorted(each.name for each in work.glob("*.export.*.recipe.yaml"))
    assert recipes == [f"a.deduped.export.{form}.recipe.yaml" for form in ("json", "parquet")]


@pytest.mark.data
@pytest.mark.usefixtures("set_up")
def test_ctrl_c_says_that_nothing_was_written_and_how_to_go_on(
    toolcrib: Started, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies = work.parent / "tmp"
    copies.mkdir()
    monkeypatch.setenv("TMPDIR", str(copies))
    (work / "a.jsonl").write_text(ROW * 300_000)
    process = toolcrib("data", "clean", "a.jsonl")
    while not [*copies.rglob("in1.jsonl")]:  # it is copied in when the run has begun
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert err.startswith("Stopped. The current file was not written. Run the same command")
    assert err.count("\n") == 1
    assert [each.name for each in work.glob("a.*")] == ["a.jsonl"]


@pytest.mark.data
@pytest.mark.usefixtures("set_up")
def test_a_table_is_exported_to_be_split(cli: Command, work: Path) -> None:
    (work / "a.csv").write_text("id,text\n" + "".join(f"{i},Line {i} of many\n" for i in range(9)))
    assert cli("data", "split", "a.csv", "--parts", "x=0.5,y=0.5").code == 0
    parts = [(work / f"a.{part}.jsonl").read_text() for part in "xy"]
    assert sorted("".join(parts).splitlines()) == (work / "a.rows.jsonl").read_text().splitlines()
    (work / "a.x.jsonl").unlink()
    ended = cli("data", "split", "--recipe", "a.split.recipe.yaml", "--overwrite")
    assert ended.code == 0, ended.err
    assert (work / "a.x.jsonl").read_text() == parts[0]
