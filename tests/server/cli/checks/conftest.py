"""What the tests of `toolcrib doctor` share."""

import json
from pathlib import Path

import pytest

from tests.server.cli.conftest import Command, Ended


def findings(ended: Ended) -> dict[str, tuple[bool | None, str]]:
    return {row["subject"]: (row["ok"], row["detail"]) for row in json.loads(ended.out)}


def check_failure(cli: Command, subject: str, says: str) -> None:
    """One check alone fails, and says this."""
    ended = cli("doctor", "--json")
    assert (ended.code, ended.err) == (1, "")
    failed = {name: detail for name, (ok, detail) in findings(ended).items() if ok is False}
    assert list(failed) == [subject]
    assert says in failed[subject]


@pytest.fixture
def data(cli: Command, work: Path) -> Path:
    """A data directory with three documents."""
    assert cli("add", "notes").code == 0
    return work.parent / "data"
