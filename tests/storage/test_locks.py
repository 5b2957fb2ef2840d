from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

from storage.locks import locked

HOLD = (
    "import sys; from pathlib import Path; from storage.locks import locked\n"
    "with locked(Path(sys.argv[1]), wait=True): print('held', flush=True); sys.stdin.read()"
)


def test_one_process_holds_a_lock_and_its_death_frees_it(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with locked(path, wait=False) as held:
            assert not held
        holder.kill()
        holder.wait()
        with locked(path, wait=True) as held:
            assert held
    with locked(path, wait=False) as held:
        assert held
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
