from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tools.core.errors import UnavailableError
from tools.data.running.staging import Stage
from tools.sandbox.files.sandbox import Sandbox


def test_what_finds_no_room_is_unavailable_with_its_name(
    tmp_path: Path, full_disk: Callable[[int], AbstractContextManager[None]]
) -> None:
    root, seen = tmp_path / "root", tmp_path / "seen"
    root.mkdir()
    seen.mkdir()
    (root / "large.jsonl").write_bytes(bytes(100_000))
    stage = Stage(Sandbox(root), seen)
    with full_disk(1_000), pytest.raises(UnavailableError, match=r"^large\.jsonl") as raised:
        stage.take("large.jsonl")
    assert "TMPDIR" in raised.value.next_actions[0]
