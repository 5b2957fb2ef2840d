"""Prepares an edit: reads the whole file, and checks that it is the expected version."""

from __future__ import annotations

import os

from tools.core.errors import ConflictError, InvalidArgumentsError
from tools.sandbox.files.kept import digest_of
from tools.sandbox.files.nofollow import read_up_to

ABSENT = "absent"
"""Expected instead of a digest if the file must not exist."""

MAX_EDIT_BYTES = 10_000_000
"""Limit on the size of an edited file."""


def whole_content(fd: int, path: str) -> bytes:
    """Reads an open file and closes it."""
    try:
        data = read_up_to(fd, MAX_EDIT_BYTES + 1, os.fstat(fd).st_size)
    finally:
        os.close(fd)
    if len(data) > MAX_EDIT_BYTES:
        raise InvalidArgumentsError(
            f"The file {path!r} is larger than {MAX_EDIT_BYTES} bytes, too large to be edited.",
            next_actions=["Write a new file, or split this one first."],
        )
    return data


def check_expected(path: str, old: bytes | None, expected_sha256: str | None) -> None:
    """Raises ConflictError unless the content, or its absence, is as expected."""
    if expected_sha256 is None:
        return
    actual = None if old is None else digest_of(old)
    if expected_sha256 == ABSENT:
        if actual is None:
            return
        raise ConflictError(
            f"The file {path!r} is there already.",
            next_actions=["Give another path, or have it replaced."],
        )
    if actual is not None and actual.startswith(expected_sha256.lower()):
        return
    found = "does not exist" if actual is None else f"has the digest {actual[:12]}"
    raise ConflictError(
        f"The file {path!r} {found}, not the expected {expected_sha256}.",
        next_actions=["Read the file again and base the change on what it holds now."],
    )
