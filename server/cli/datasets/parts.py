"""`toolcrib data split`: a data set in parts, for training and tests."""

from __future__ import annotations

import sys
from collections.abc import Sequence
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
    from tools.core.errors import ToolError
    from tools.data.running.splitting import SplitRecipe, SplitReport

PARTS = "train=0.9,test=0.1"

TYPED = {"list_directory": "`ls`", "overwrite=true": "--overwrite"}
"""What the user types instead of what failures of tools name."""


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
        int | None, typer.Option("--seed", help="Another one makes other parts.")
    ] = None,
    text_key: TextKey = None,
    recipe: Annotated[
        Path | None,
        typer.Option("--recipe", exists=True, dir_okay=False, help="Run what a split has written."),
    ] = None,
    overwrite: Overwrite = False,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Split rows into parts; rows with the same text come into the same part."""
    from server.cli.opened import opened
    from server.cli.terminal.interruption import stoppable
    from tools.core.errors import ToolError
    from tools.data.running.splitting import SplitRecipe

    if bool(files) == (recipe is not None):
        raise typer.BadParameter("give FILEs, or --recipe")
    if recipe is not None and (parts, seed, text_key) != (None, None, None):
        raise typer.BadParameter("--recipe says parts, seed and text key: change them there")
    shares = _shares(parts or PARTS)
    files = list(dict.fromkeys(files or ()))
    if recipe is None:
        rows = _export_rows(files, text_key, data_dir, config, overwrite=overwrite)
        chosen = {"text_key": text_key, "seed": seed or 0, "parts": shares}
        given = [SplitRecipe(source=str(file), **chosen) for file in rows]
    else:
        try:
            content = recipe.read_text(encoding="utf-8", errors="replace")
            given = [SplitRecipe.from_yaml(content, str(recipe))]
        except ToolError as error:
            _print_failure(error)
            given = []
    is_whole = len(given) == len(files or [recipe])
    with (
        stoppable("Run the same command again, with --overwrite if parts exist."),
        opened(data_dir=data_dir, config_file=config) as app,
    ):
        for each in given:
            try:
                echo(_split(app, each, overwrite=overwrite).to_text())
            except ToolError as error:
                _print_failure(error)
                is_whole = False
    if not is_whole:
        sys.exit(1)


def _print_failure(error: ToolError) -> None:
    from tools.core.calling.words import Words
    from tools.core.result import ToolFailure

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
    from tools.core.calling.words import Action
    from tools.core.errors import ConflictError
    from tools.data.running.splitting import ROWS
    from tools.data.worker.entries import stem_of

    rows, exported = {}, []
    for file in files:
        is_lines = file.suffix == ".jsonl"
        rows[file] = file if is_lines else file.with_name(f"{stem_of(file.name)}{ROWS}.jsonl")
        if rows[file].exists() and not (is_lines or overwrite):  # an export names other options
            replace = Action("Give {} to replace it.", "overwrite=true")
            _print_failure(
                ConflictError(f"{rows.pop(file)} already exists.", next_actions=[replace])
            )
        elif not is_lines:
            exported.append(file)
    options: dict[str, Any] = {"work": [], "text_key": text_key, "overwrite": overwrite}
    asked = make_arguments(exported, None, f"{ROWS}.jsonl", **options)
    succeeded = call_tool("clean_dataset", asked, data_dir, config) if asked else []
    failed = {file for file, ok in zip(exported, succeeded, strict=True) if not ok}
    return [rows[file] for file in rows if file not in failed]


def _split(app: App, recipe: SplitRecipe, *, overwrite: bool) -> SplitReport:
    """Splits a file, which is named relative to the working directory if it is inside it."""
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
