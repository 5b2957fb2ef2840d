"""What `toolcrib doctor` says of the confinement."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from server.cli.checks.findings import Finding, show
from server.cli.checks.installation import confinement
from server.settings import Settings
from server.settings.sources import load

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="its levels are Linux's")


def settings(tmp_path: Path, data: str = "data", **flags: Any) -> Settings:
    (tmp_path / "root").mkdir()
    (tmp_path / data).mkdir(parents=True)
    places = {"root": tmp_path / "root", "data_dir": tmp_path / data}
    named = {key.replace("__", "."): value for key, value in flags.items()}
    return load(places | named, environ={"TOOLCRIB_CONFIG": ""})


def test_the_best_level_that_works_is_named_first(tmp_path: Path) -> None:
    told = confinement(settings(tmp_path)).detail
    assert told.startswith("bubblewrap ")
    assert "Landlock ABI" in told
    assert told.endswith("network: none")


def test_the_hosts_that_programs_reach_are_named(tmp_path: Path) -> None:
    told = confinement(settings(tmp_path, system__network=("example.com:443",))).detail
    assert told.endswith("network: example.com:443")


def test_why_a_better_level_does_not_work_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    told = confinement(settings(tmp_path)).detail
    assert told.startswith("Landlock ABI")
    assert "bubblewrap is not installed. Install the package bubblewrap." in told


def test_commands_are_printed_to_be_copied(capsys: pytest.CaptureFixture[str]) -> None:
    command = f"{'a ' * 60}\n  b"  # wider than the terminal
    show(Finding("Confinement", ok=True, detail="bubblewrap: no", commands=(command,)))
    assert f"\n{command}\n" in capsys.readouterr().out


def test_a_confinement_that_is_required_and_missing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    inside = settings(tmp_path, "root/data", system__sandbox="required")
    found = confinement(inside)
    assert found.ok is False
    assert re.search(r"required, .* cannot keep programs from .*/root/data", found.detail)


def test_none_is_told_where_one_is_only_preferred(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    told = confinement(settings(tmp_path, "root/data")).detail
    assert told.startswith("none, programs run unconfined: bubblewrap: ")


def test_none_is_tried_where_it_is_off(tmp_path: Path) -> None:
    told = confinement(settings(tmp_path, system__sandbox="off")).detail
    assert told.startswith("none: the setting system.sandbox is off")
