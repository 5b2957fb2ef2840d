"""How much memory there is, and when hardly any is left."""

import sys
from pathlib import Path

import pytest

from tools.sandbox.processes.launching import usage
from tools.sandbox.processes.launching.messages import EndReason

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux says what others use")


def test_programs_end_when_the_machine_has_hardly_any_memory_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(usage, "_SECONDS", 0)
    assert usage.UsageWatch(1 << 60, 0, scoped=False).check() is EndReason.NONE
    monkeypatch.setattr(usage, "_RESERVE", 1)  # all of it has to stay available
    assert usage.UsageWatch(1 << 60, 0, scoped=False).check() is EndReason.MACHINE_MEMORY


def test_a_container_has_the_memory_that_it_is_given(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole = usage.machine_memory()
    assert whole > 1 << 28
    limit, free = tmp_path / "limit", tmp_path / "free"
    limit.write_text("12345678\n")
    free.write_text("max\n")
    monkeypatch.setattr(usage, "_CGROUP_LIMITS", (str(free), str(limit), str(tmp_path / "no")))
    assert usage.machine_memory() == 12_345_678
