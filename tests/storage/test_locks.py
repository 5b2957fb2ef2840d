import stat
import subprocess
import sys
from pathlib import Path

from storage.locks import Presence, locked

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


BE = (
    "import sys; from pathlib import Path; from storage.locks import Presence\n"
    "here = Presence(Path(sys.argv[1])); here.begin(); print(here.name, flush=True)\n"
    "sys.stdin.read()"
)


def test_a_process_is_known_to_be_alive_until_it_dies(tmp_path: Path) -> None:
    own = Presence(tmp_path)
    own.begin()
    with subprocess.Popen(
        [sys.executable, "-c", BE, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        name = other.stdout.readline().decode().strip()
        assert own.is_alive(name)
        other.kill()
        other.wait()
        assert not own.is_alive(name)
    assert list(tmp_path.iterdir()) == [tmp_path / f"{own.name}.lock"]
    own.end()
    assert not own.is_alive(own.name)
