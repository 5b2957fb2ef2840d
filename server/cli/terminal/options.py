"""Options that commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ConfigOption = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Settings file (TOML).")
]
DataDirOption = Annotated[
    Path | None, typer.Option("--data-dir", metavar="DIR", help="Directory of all stored data.")
]
RootOption = Annotated[
    Path | None, typer.Option("--root", metavar="DIR", help="Directory that file tools work in.")
]
FunctionsOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--functions",
        metavar="FILE_OR_DIR",
        help="Python file whose functions become tools, or a directory of them; may be repeated.",
    ),
]
ServerArgument = Annotated[str, typer.Argument(help="Name of the server in the settings.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
