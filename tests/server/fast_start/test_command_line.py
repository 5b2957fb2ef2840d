"""Which command lines are read without the parser of the commands, and that both read the same."""

from pathlib import Path

import pytest
from typer.main import get_command

from server.cli import serving
from server.cli.commands import app
from server.fast_start.reader import ServeArguments, read_command_line


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--transport", "stdio"],
        ["--transport", "http", "--transport=stdio"],
        ["--root=/", "--data-dir", "--odd"],
        ["--root", "a", "--root", ""],
        ["--functions", "a.py", "b.py", "--functions=c d.py", "e.py"],
        ["--config", "~/x.toml", "--data-dir=a=b"],
        ["--root", "/", "--allow-broad-root"],
        ["--root", "--allow-broad-root", "--data-dir", "a"],
    ],
)
def test_a_server_over_stdio_is_started_as_the_commands_would(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[ServeArguments] = []

    def start(flags: dict[str, object], config: Path | None, *, transport: str) -> None:
        assert transport == "stdio"
        started.append(ServeArguments(config, flags))

    monkeypatch.setattr(serving, "serve", start)
    get_command(app).main(["serve", *words], standalone_mode=False)
    assert started == [read_command_line(["serve", *words])]


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--help"],
        ["tools"],
        ["--version", "serve"],
        ["serve", "--help"],
        ["serve", "--transport", "http"],
        ["serve", "--transport=sse"],
        ["serve", "--root"],
        ["serve", "--port", "1"],
        ["serve", "--", "a.py"],
        ["serve", "a.py"],
    ],
)
def test_any_other_command_line_is_left_to_the_commands(words: list[str]) -> None:
    assert read_command_line(words) is None
