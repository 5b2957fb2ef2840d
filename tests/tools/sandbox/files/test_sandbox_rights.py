import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.core.errors import PermissionDeniedError
from tools.sandbox.files.openat import DirectoryOpener
from tools.sandbox.files.sandbox import Sandbox

pytestmark = pytest.mark.boundary

NOBODY = 65534


@pytest.fixture
def open_house() -> Iterator[Path]:
    """A directory that any user may enter, with the rights of nobody while the test runs."""
    with tempfile.TemporaryDirectory() as name:
        house = Path(name)
        house.chmod(0o777)
        (house / "closed").mkdir(mode=0o700)
        (house / "closed" / "file.txt").write_bytes(b"x")
        (house / "entered-only").mkdir()
        (house / "entered-only" / "file.txt").write_bytes(b"x")
        (house / "entered-only").chmod(0o111)
        (house / "unreadable.txt").write_bytes(b"x")
        (house / "unreadable.txt").chmod(0o000)
        (house / "read-only.txt").write_bytes(b"x")
        (house / "read-only.txt").chmod(0o444)
        if os.geteuid() != 0:
            (house / "closed").chmod(0o000)
            yield house
            for each in ("closed", "entered-only"):
                (house / each).chmod(0o700)
            return
        os.seteuid(NOBODY)
        try:
            yield house
        finally:
            os.seteuid(0)


def test_what_the_system_refuses_is_permission_denied(
    open_house: Path, open_directory: DirectoryOpener
) -> None:
    sandbox = Sandbox(open_house, open_directory=open_directory)
    for path in ("closed/file.txt", "unreadable.txt"):
        with pytest.raises(PermissionDeniedError, match="system refuses"):
            sandbox.read(path, max_bytes=1)
    for path in ("closed/new.txt", "entered-only/new/file.txt", "unreadable.txt", "read-only.txt"):
        with pytest.raises(PermissionDeniedError, match="system refuses"):
            sandbox.write(path, b"y")
        with pytest.raises(PermissionDeniedError, match="system refuses"):
            sandbox.check_write(path)
    assert sandbox.read("read-only.txt", max_bytes=9).data == b"x"
    with pytest.raises(PermissionDeniedError):
        sandbox.list_directory("closed")


def test_a_directory_that_may_only_be_entered_is_enough_to_read(
    open_house: Path, open_directory: DirectoryOpener
) -> None:
    sandbox = Sandbox(open_house, open_directory=open_directory)
    assert sandbox.read("entered-only/file.txt", max_bytes=9).data == b"x"


def test_an_unprivileged_user_writes_what_is_theirs(
    open_house: Path, open_directory: DirectoryOpener
) -> None:
    sandbox = Sandbox(open_house, open_directory=open_directory)
    assert sandbox.write("mine/file.txt", b"1").created
    assert not sandbox.write("mine/file.txt", b"2").created
    assert (open_house / "mine" / "file.txt").stat().st_uid == os.geteuid()


def test_a_listing_goes_on_past_a_directory_it_may_not_read(
    open_house: Path, open_directory: DirectoryOpener
) -> None:
    listing = Sandbox(open_house, open_directory=open_directory).list_directory(depth=2)
    assert "closed" in listing.unreadable
    assert "read-only.txt" in [entry.path for entry in listing.entries]
