"""What stands in for Landlock on kernels whose Landlock covers less."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.sandbox.processes.kernel.landlock import landlock_abi

pytestmark = [
    pytest.mark.skipif(not landlock_abi(), reason="Linux with Landlock alone"),
    pytest.mark.boundary,
]

OPENS = """
import os, sys
sys.path.append(sys.argv[1])
from tools.sandbox.processes.kernel import process, seccomp
seccomp.landlock_abi = lambda: int(sys.argv[2])
process.forbid_new_privileges()
if sys.argv[3] == "filtered":
    os.close(seccomp.install(seccomp.filter_program(landlocked=True)))
for flags in map(int, sys.argv[5:]):
    try:
        os.open(sys.argv[4], flags)
    except PermissionError:
        print("refused")
    else:
        print(os.stat(sys.argv[4]).st_size)
"""


def opened(path: Path, abi: int, *flags: int, filtered: bool = True) -> list[str]:
    """What is left of six bytes for each way to open them, one after the other."""
    path.write_bytes(b"secret")
    root = str(Path(__file__).parents[5])
    name = "filtered" if filtered else "open"
    arguments = (root, str(abi), name, str(path), *map(str, flags))
    run = [sys.executable, "-ISc", OPENS, *arguments]
    return subprocess.run(run, check=True, capture_output=True, text=True).stdout.split()


@pytest.mark.parametrize("access", [os.O_RDONLY, os.O_ACCMODE])
def test_a_file_is_emptied_that_is_not_opened_for_writing(tmp_path: Path, access: int) -> None:
    assert opened(tmp_path / "file", 1, access | os.O_TRUNC, filtered=False) == ["0"]


@pytest.mark.parametrize(("abi", "emptied"), [(1, "refused"), (2, "refused"), (3, "0"), (6, "0")])
def test_only_what_is_opened_for_writing_is_emptied_where_landlock_does_not_look(
    tmp_path: Path, abi: int, emptied: str
) -> None:
    file = tmp_path / "file"
    assert opened(file, abi, os.O_RDONLY, os.O_RDONLY | os.O_TRUNC) == ["6", emptied]
    for access in (os.O_WRONLY, os.O_RDWR):
        assert opened(file, abi, access, access | os.O_TRUNC) == ["6", "0"]


@pytest.mark.parametrize("abi", [1, 2, 3, 4, 5, 6])
def test_nothing_is_opened_for_neither_reading_nor_writing(tmp_path: Path, abi: int) -> None:
    neither = (os.O_ACCMODE, os.O_ACCMODE | os.O_TRUNC, os.O_ACCMODE | os.O_NONBLOCK)
    assert opened(tmp_path / "file", abi, *neither) == ["refused"] * 3
