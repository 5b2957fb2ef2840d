"""What the tests of these commands share."""

from pathlib import Path

import pytest


@pytest.fixture
def settings(work: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A settings file, named by the environment."""
    path = work.parent / "settings" / "config.toml"
    path.parent.mkdir()
    path.write_text("")
    monkeypatch.setenv("TOOLCRIB_CONFIG", str(path))
    return path
