"""`toolcrib data inspect`, `clean`, `dedupe` and `export`: a call of a tool for each file."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from server.cli.datasets.places import files_at, relative
from server.cli.invocation import invocation
from server.cli.terminal.options import ConfigOption, DataDirOption
from server.cli.terminal.screen import echo

if TYPE_CHECKING:
    from server.app import App

Files = Annotated[
    list[Path],
    typer.Argument(metavar="FILE...", help="JSONL, JSON, CSV or Parquet, or a folder of texts."),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", metavar="FILE", help="JSONL, JSON or Parquet; for one FILE."),
]
TextKey = Annotated[
    str | None, typer.Option("--text-key", help="The field with the texts, if not the longest.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Try it on the first 1,000 rows, and write nothing.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace existing files.")]
KeepStats = Annotated[
    bool, typer.Option("--keep-stats", help="Write the values that filters computed for each row.")
]


_PATHS = ("dataset_source", "output_path")

TYPED = {
    "inspect_dataset": "`toolcrib data inspect`",
    "list_directory": "`ls`",
    "output_path": "--output",
    "overwrite=true": "--overwrite",
    "text_key": "--text-key",
}
"""Command-line words for tool names and parameters."""

GOES_ON = (
    "The current file was not written. Run the same command again: finished operators that took"
    " more than ten seconds are not repeated."
)
"""Printed after a Ctrl-C."""


class Form(StrEnum):
    """Output formats."""

    JSONL = "jsonl"
    JSON = "json"
    PARQUET = "parquet"


def inspect(
    files: Files,
    sample: Annotated[int, typer.Option("--sample", min=1, max=200, help="Rows to look at.")] = 20,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Show format, size, fields, texts and first rows."""
    asked = [{"dataset_source": str(file.absolute()), "sample_size": sample} for file in files]
    _call_or_exit("inspect_dataset", asked, data_dir, config)


def clean(  # noqa: PLR0913, PLR0917  # one parameter an option
    files: Files,
    output: Output = None,
    text_key: TextKey = None,
    dry_run: DryRun = False,
    overwrite: Overwrite = False,
    keep_stats: KeepStats = False,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Repair texts; drop empty, garbled and repeated rows; write a recipe and a report."""
    options = {"dry_run": dry_run, "overwrite": overwrite, "keep_stats": keep_stats}
    asked = make_arguments(files, output, ".clean.jsonl", text_key=text_key, **options)
    _call_or_exit("clean_dataset", asked, data_dir, config)


def dedupe(  # noqa: PLR0913, PLR0917  # one parameter an option
    files: Files,
    near: Annotated[
        bool, typer.Option("--near", help="Also drop texts that are nearly the same.")
    ] = False,
    output: Output = None,
    text_key: TextKey = None,
    dry_run: DryRun = False,
    overwrite: Overwrite = False,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Drop rows without a text, and those whose text an earlier row has too; change no text."""
    work = ["dedupe_near" if near else "dedupe"]
    options = {"dry_run": dry_run, "overwrite": overwrite, "text_key": text_key}
    asked = make_arguments(files, output, ".deduped.jsonl", work=work, **options)
    _call_or_exit("clean_dataset", asked, data_dir, config)


def export(  # noqa: PLR0913, PLR0917  # one parameter an option
    files: Files,
    form: Annotated[Form, typer.Option("--to", help="The format to write.")] = Form.JSONL,
    output: Output = None,
    text_key: TextKey = None,
    overwrite: Overwrite = False,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Write rows that have a text in another format, unchanged."""
    options = {"overwrite": overwrite, "text_key": text_key}
    asked = make_arguments(files, output, f".export.{form}", work=[], **options)
    _call_or_exit("clean_dataset", asked, data_dir, config)


def make_arguments(
    files: Sequence[Path], output: Path | None, ending: str, **options: object
) -> list[dict[str, Any]]:
    """Returns the arguments of a call for each file."""
    from tools.data.worker.entries import stem_of

    if output is not None and len(files) > 1:
        raise typer.BadParameter("--output goes with one FILE")
    if output is not None and output.suffix not in {f".{form}" for form in Form}:
        raise typer.BadParameter(f"--output: {output} does not end in .{', .'.join(Form)}")
    given = {name: value for name, value in options.items() if value is not None}
    return [
        {
            "dataset_source": str(file.absolute()),
            "output_path": str(
                (output or file.with_name(f"{stem_of(file.name)}{ending}")).absolute()
            ),
            **given,
        }
        for file in files
    ]


def call_tool(
    name: str, asked: Sequence[Mapping[str, Any]], data_dir: Path | None, config: Path | None
) -> list[bool]:
    """Calls a tool for each file and prints the answers; returns whether each call succeeded."""
    from server.cli.opened import open_app
    from server.cli.terminal.errors import run, stoppable

    with stoppable(GOES_ON), open_app(data_dir=data_dir, config_file=config) as app:
        return run(partial(_run, app, name, asked))


def _call_or_exit(
    name: str, asked: Sequence[Mapping[str, Any]], data_dir: Path | None, config: Path | None
) -> None:
    if not all(call_tool(name, asked, data_dir, config)):
        sys.exit(1)


async def _run(app: App, name: str, asked: Sequence[Mapping[str, Any]]) -> list[bool]:
    from server.cli.terminal.screen import console, print_line
    from tools.core.errors import Words

    here = Path.cwd()
    manager = app.personal.worded(Words(invocation(), TYPED))

    async def make(given: Mapping[str, Any]) -> bool:
        moved = _relative(given, here)
        root = Path(here.anchor) if moved is None else here
        files = files_at(app, root, f"toolcrib data ({name})")
        result = await manager.over(files).execute(name, moved or given, context)
        echo(result.text, err=result.is_error)
        if not (terminal.is_terminal or result.is_error):  # no progress was shown
            source, first = (moved or given)["dataset_source"], result.text.partition("\n")[0]
            print_line(terminal, f"{source}: {first.removeprefix(f'{source}: ')}")
        return not result.is_error

    terminal = console()
    with terminal.status("") as status:

        async def report(_done: float, _total: float | None, message: str | None) -> None:
            status.update(message or "")

        context = app.context.reporting(report)
        async with app.machine.running():
            return [await make(each) for each in asked]


def _relative(given: Mapping[str, Any], here: Path) -> dict[str, Any] | None:
    """Returns the arguments with relative paths, or None if one leads out of the directory."""
    keys = [key for key in _PATHS if key in given]
    paths = relative([Path(given[key]) for key in keys], here)
    return None if paths is None else {**given, **dict(zip(keys, paths, strict=True))}
