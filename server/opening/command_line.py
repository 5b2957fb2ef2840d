"""Parses the command line of a stdio server before the command parser is loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple


class ServeArguments(NamedTuple):
    """The arguments of `toolcrib serve`.

    Attributes:
        config: The settings file, if named.
        flags: Settings by dotted key; None if not given.
    """

    config: Path | None
    flags: Mapping[str, object]


def read_command_line(words: Sequence[str]) -> ServeArguments | None:
    """Parses the command line, without the program's name, if it starts a stdio server.

    Returns:
        The arguments; None for any other command line, which the command parser handles.
    """
    if list(words[:1]) != ["serve"]:
        return None
    options: dict[str, list[str]] = {
        name: [] for name in ("--config", "--data-dir", "--functions", "--root", "--transport")
    }
    more: list[str] = []
    left = iter(words[1:])
    for word in left:
        if not word.startswith("-"):
            more.append(word)
            continue
        name, has_value, value = word.partition("=")
        given = value if has_value else next(left, None)
        if name not in options or given is None:
            return None
        options[name].append(given)
    is_stdio = options["--transport"][-1:] in ([], ["stdio"])
    if not is_stdio or (more and not options["--functions"]):
        return None
    last = {name: Path(values[-1]) if values else None for name, values in options.items()}
    functions = [Path(each) for each in options["--functions"] + more]
    flags = flags_of(functions, last["--root"], last["--data-dir"])
    return ServeArguments(last["--config"], flags)


def flags_of(  # noqa: PLR0913  # one parameter an option
    functions: Sequence[Path],
    root: Path | None,
    data_dir: Path | None,
    host: str | None = None,
    port: int | None = None,
    *,
    allow_broad_root: bool | None = None,
) -> dict[str, object]:
    """Maps the options of `toolcrib serve` to settings; None if not given."""
    return {
        "http.host": host,
        "http.port": port,
        "functions.paths": list(functions) or None,
        "allow_broad_root": allow_broad_root,
        "root": root,
        "data_dir": data_dir,
    }
