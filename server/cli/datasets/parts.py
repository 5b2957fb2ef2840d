"""`toolcrib data split`: a data set in parts, for training and tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from server.cli.datasets.places import files_at, relative
from server.cli.datasets.verbs import Overwrite, TextKey, call_tool, make_arguments
from server.cli.invocation import invocation
from server.cli.terminal.options import ConfigOption, DataDirOption
from server.cli.terminal.screen import echo

if TYPE_CHECKING:
    from server.app import App
    from tools.data.running.splitting import SplitRecipe, SplitReport

PARTS = "train=0.9,test=0.1"

TYPED = {"list_directory": "`ls`", "overwrite=true": "--overwrite"}
"""Command-line words for tool names and parameters in failures."""


def split(  # noqa: PLR0913, PLR0917  # one parameter an option
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE",
            help="JSONL; JSON, CSV, Parquet or a folder of texts is exported to it first.",
        ),
    ] = None,
    parts: Annotated[
        str | None,
        typer.Option(
            "--parts", help=f"Name and share of each part, which add up to 1; default: {PARTS}."
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="A different seed gives different parts.")
    ] = None,
    text_key: TextKey = None,
    recipe: Annotated[
        Path | None,
        typer.Option("--recipe", exists=True, dir_okay=False, help="Run a split's recipe."),
    ] = None,
    overwrite: Overwrite = False,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Split rows into parts; rows with the same text go to the same part."""
    from server.cli.opened import open_app
    from server.cli.terminal.errors import stoppable
    from tools.data.running.splitting import SplitRecipe

    if bool(files) == (recipe is not None):
        raise typer.BadParameter("give FILEs, or --recipe")
    if recipe is not None and (parts, seed, text_key) != (None, None, None):
        raise typer.BadParameter("--recipe sets parts, seed and text key: change them there")
    shares = _shares(parts or PARTS)
    files = list(dict.fromkeys(files or ()))
    given, done = [], 0
    if recipe is None:
        rows = _export_rows(files, text_key, data_dir, config, overwrite=overwrite)
        chosen = {"text_key": text_key, "seed": seed or 0, "parts": shares}
        given = [SplitRecipe(source=str(file), **chosen) for file in rows]
    else:
        with _printing_failures():
            content = recipe.read_text(encoding="utf-8", errors="replace")
            given = [SplitRecipe.from_yaml(content, str(recipe))]
    with (
        stoppable("Run the same command again, with --overwrite if parts exist."),
        open_app(data_dir=data_dir, config_file=config) as app,
    ):
        for each in given:
            with _printing_failures():
                echo(_split(app, each, overwrite=overwrite).to_text())
                done += 1
    if done < len(files or [recipe]):
        sys.exit(1)


@contextmanager
def _printing_failures() -> Iterator[None]:
    """Prints why a file cannot be split, so that the others still are."""
    from tools.core.errors import ToolError, Words
    from tools.core.result import ToolFailure

    try:
        yield
    except ToolError as error:
        echo(ToolFailure.of(error, Words(invocation(), TYPED)).to_text(), err=True)


def _export_rows(
    files: Sequence[Path],
    text_key: str | None,
    data_dir: Path | None,
    config: Path | None,
    *,
    overwrite: bool,
) -> list[Path]:
    """Returns files as JSONL, to which others are exported first, without those that failed."""
    from tools.core.errors import Action, ConflictError
    from tools.data.running.splitting import ROWS
    from tools.data.worker.entries import stem_of

    rows: dict[Path, Path] = {}
    for file in files:
        is_lines = file.suffix == ".jsonl"
        path = file if is_lines else file.with_name(f"{stem_of(file.name)}{ROWS}.jsonl")
        with _printing_failures():
            if path.exists() and not (is_lines or overwrite):  # an export names its own options
                raise ConflictError(
                    f"{path} already exists.",
                    next_actions=[Action("Give {} to replace it.", "overwrite=true")],
                )
            rows[file] = path
    others = [file for file, path in rows.items() if path != file]
    options: dict[str, Any] = {"work": [], "text_key": text_key, "overwrite": overwrite}
    asked = make_arguments(others, None, f"{ROWS}.jsonl", **options)
    succeeded = call_tool("clean_dataset", asked, data_dir, config) if asked else []
    failed = {file for file, ok in zip(others, succeeded, strict=True) if not ok}
    return [path for file, path in rows.items() if file not in failed]


def _split(app: App, recipe: SplitRecipe, *, overwrite: bool) -> SplitReport:
    """Splits a file, named relative to the working directory if inside it."""
    from tools.data.running.splitting import split as split_one

    here = Path.cwd()
    path = Path(recipe.source).absolute()
    named = relative([path], here)
    sandbox = files_at(app, here if named else Path(path.anchor), "toolcrib data split")
    [source] = named or [str(path)]
    return split_one(sandbox, recipe.model_copy(update={"source": source}), overwrite=overwrite)


def _shares(parts: str) -> dict[str, float]:
    from tools.data.running.splitting import check_parts

    shares: dict[str, float] = {}
    for part in parts.split(","):
        name, _, share = part.strip().partition("=")
        if name in shares:
            raise typer.BadParameter(f"--parts: {name!r} is named twice; give each part a name")
        try:
            shares[name] = float(share)
        except ValueError:
            raise typer.BadParameter(f"--parts: {part!r} is not NAME=SHARE") from None
        if not (name.isidentifier() and 0 < shares[name] <= 1):
            raise typer.BadParameter(f"--parts: {part!r} needs a plain name, and a share up to 1")
    try:
        check_parts(shares)
    except ValueError as error:
        raise typer.BadParameter(f"--parts: {error}") from None
    return shares
