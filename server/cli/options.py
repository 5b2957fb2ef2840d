"""Options that commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["ConfigOption", "DataDirOption", "RootOption"]

ConfigOption = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="The TOML file with the settings.")
]
DataDirOption = Annotated[
    Path | None,
    typer.Option("--data-dir", metavar="DIR", help="Where everything is kept."),
]
RootOption = Annotated[
    Path | None,
    typer.Option("--root", metavar="DIR", help="The directory that file tools see."),
]
