import os
import subprocess
import sys
from pathlib import Path

import pytest

from server.cli.invocation import invocation, invocation_elsewhere
from server.clients.locations import command_path
from server.settings.sources import load


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A command in an environment of its own that runs now, and is not on the PATH."""
    command = tmp_path / "it's mine" / "bin" / "toolcrib"
    command.parent.mkdir(parents=True)
    command.write_text(f'#!/bin/sh\nexec {command_path()} "$@"\n')
    command.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}/path:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in [each for each in os.environ if each.startswith(("TOOLCRIB_", "UV_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(sys, "argv", [str(command), "doctor"])
    monkeypatch.chdir(tmp_path)
    return command


def version_of(command: str) -> str:
    """What a shell prints that is given the command as it was told."""
    ended = subprocess.run(
        ["sh", "-c", f"{command} --version"],  # noqa: S607  # the shell of whoever copies it
        check=True,
        capture_output=True,
        text=True,
    )
    return ended.stdout


def test_a_command_off_the_path_is_told_by_its_path_here(installed: Path) -> None:
    assert invocation() == "'it'\"'\"'s mine/bin/toolcrib'"
    assert version_of(invocation()).startswith("toolcrib ")


def test_from_elsewhere_its_path_is_whole(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    told = invocation()
    assert str(installed.parent) in told.replace("'\"'\"'", "'")
    assert version_of(told).startswith("toolcrib ")


def test_in_its_own_directory_it_is_not_looked_for_on_the_path(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(installed.parent)
    assert invocation() == "./toolcrib"
    assert version_of(invocation()).startswith("toolcrib ")


def test_a_directory_that_is_gone_has_no_paths_of_its_own(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert str(installed.parent) in invocation().replace("'\"'\"'", "'")


def test_on_the_path_its_name_does_also_through_a_link(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "toolcrib").symlink_to(installed)
    assert invocation() == "toolcrib"


def test_another_one_on_the_path_is_not_meant(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "toolcrib").write_text("#!/bin/sh\n")
    (tmp_path / "path" / "toolcrib").chmod(0o700)
    assert invocation() == "'it'\"'\"'s mine/bin/toolcrib'"


def test_what_uv_run_puts_on_the_path_is_there_for_that_run_alone(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{installed.parent}:/usr/bin:/bin")
    assert invocation() == "toolcrib"
    monkeypatch.setenv("UV_RUN_RECURSION_DEPTH", "1")
    assert invocation() != "toolcrib"


def test_for_another_terminal_it_says_which_settings_and_data_are_meant(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = tmp_path / ".config" / "toolcrib" / "config.toml"
    usual.parent.mkdir(parents=True)
    usual.write_text(f"data_dir = '{tmp_path}/kept'\n")
    monkeypatch.setattr(sys, "argv", ["it's mine/bin/toolcrib"])
    plain = invocation_elsewhere(load())
    assert plain.replace("'\"'\"'", "'") == f"'{installed}'"
    other = tmp_path / "other.toml"
    other.write_text("data_dir = '/kept'\n")
    flags = {"data_dir": Path("/my data")}
    assert invocation_elsewhere(load(config_file=other)) == f"TOOLCRIB_CONFIG={other} {plain}"
    assert invocation_elsewhere(load(flags)) == f"TOOLCRIB_DATA_DIR='/my data' {plain}"
