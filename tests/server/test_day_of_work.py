"""A day of an agent's work, with the rules that were suggested for its project."""

import shutil
import socket
from pathlib import Path

import pytest

from benchmarks.day_of_work import LEVELS, MOST_QUESTIONS, begin, work

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("npm", path="/usr/local/bin:/usr/bin:/bin") is None,
        reason="it needs a Node and npm that programs see",
    ),
]


@pytest.fixture
def registries() -> None:
    try:
        socket.getaddrinfo("pypi.org", 443)
    except OSError:
        pytest.skip("it needs the registries of PyPI and npm")


@pytest.mark.usefixtures("registries")
@pytest.mark.parametrize("level", LEVELS)
async def test_a_day_of_work_is_done_with_few_questions(level: str, tmp_path: Path) -> None:
    async with begin(tmp_path, level) as day:
        assert f"sandbox: {level}" in await day.bash("true")
        await work(day)
    assert len(day.questions) <= MOST_QUESTIONS, "\n\n".join(day.questions)
