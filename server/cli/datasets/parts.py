"""`toolcrib data split`: a data set in parts, for training and tests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from server.cli.datasets.places import relative
from server.cli.invocation import invocation
from server.cli.terminal.options import ConfigOption, DataDirOption

__all__ = ["split"]

TYPED = {"list_directory": "`ls`", "overwrite=true": "--overwrite"}
"""What is typed for what the failures of tools speak of."""


def split(  # noqa: PLR0913, PLR0917  # one parameter an option
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="JSONL files.")],
    parts: Annotated[
        str, typer.Option("--parts", help="Name and share of each part.")
    ] = "train=0.9,test=0.1",
    seed: Annotated[int, typer.Option("--seed", help="Another one makes other parts.")] = 0,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files that are there.")
    ] = False,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Split rows into parts; rows with the same text come into the same part."""
    from server.composition.safety import make_sandbox
    from server.settings.sources import load
    from tools.core.calling.words import Words
    from tools.core.errors import ToolError
    from tools.core.result import ToolFailure
    from tools.data.running.splitting import split as split_one

    shares = _shares(parts)
    settings = load({"data_dir": data_dir}, config_file=config)
    here = Path.cwd()
    for file in files:
        path = file.absolute()
        named = relative([path], here)
        sandbox = make_sandbox(settings, here if named else Path(path.anchor))
        [source] = named or [str(path)]
        try:
            report = split_one(sandbox, source, shares, seed=seed, overwrite=overwrite)
        except ToolError as error:
            words = Words(invocation(), TYPED)
            typer.echo(ToolFailure.of(error, words).to_text(), err=True)
            sys.exit(1)
        typer.echo(report.to_text())


def _shares(parts: str) -> dict[str, float]:
    """The share of each part."""
    shares: dict[str, float] = {}
    for part in parts.split(","):
        name, _, share = part.strip().partition("=")
        try:
            shares[name] = float(share)
        except ValueError:
            raise typer.BadParameter(f"--parts: {part!r} is not NAME=SHARE") from None
        if not (name.isidentifier() and 0 < shares[name] <= 1):
            raise typer.BadParameter(f"--parts: {part!r} needs a plain name, and a share up to 1")
    return shares
