from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tools.data.release import VERSION

Command = Callable[..., Any]


def test_a_dry_run_tells_size_and_packages_and_makes_nothing(cli: Command, work: Path) -> None:
    ended = cli("data", "setup", "--dry-run")
    assert ended.code == 0
    assert "MB" in ended.out
    assert f"py-data-juicer=={VERSION}\n" in ended.out
    assert "\nray==" in ended.out
    assert not (work.parent / "data").exists()


def test_a_set_up_that_fails_says_what_to_do(
    cli: Command, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(work / "cache"))
    ended = cli("data", "setup")
    assert ended.code == 1
    assert "Data-Juicer could not be set up" in ended.err
    assert "data setup` again" in ended.err


def test_nothing_to_remove_is_no_failure(cli: Command, work: Path) -> None:
    ended = cli("data", "remove")
    assert ended.code == 0
    assert ended.out == "Data-Juicer is not set up.\n"
