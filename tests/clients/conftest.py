"""Fixtures of the tests with the programs of clients."""

from pathlib import Path

import pytest

from tests.clients.programs import PROGRAMS, Home


@pytest.fixture(params=PROGRAMS)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    """A home for each client."""
    return Home(tmp_path / "home", PROGRAMS[request.param])
