import errno
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.sandbox.files.openat import Root, identity, open_beneath, walk_beneath

pytestmark = pytest.mark.boundary

NAMES = st.sampled_from(["a", "b", "c", ".", "..", "/tmp", "{root}", "{root}/a", "{outside}"])  # noqa: S108  # one absolute path of many
PATHS = st.lists(NAMES, min_size=1, max_size=5).map("/".join)
TREES = st.dictionaries(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map("/".join),
    st.one_of(st.just("file"), st.just("directory"), PATHS.map("link:{}".format)),
    max_size=8,
)


@given(TREES, st.lists(PATHS, min_size=1, max_size=5))
def test_any_tree_of_links_keeps_every_directory_inside(
    tree: dict[str, str], paths: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        home = Path(os.path.realpath(name))
        root, outside = home / "root", home / "outside"
        root.mkdir()
        (outside / "a").mkdir(parents=True)
        names = {"{root}": str(root), "{outside}": str(outside)}
        for place, kind in sorted(tree.items()):
            _plant(root / place, kind, names)
        opened = os.open(root, os.O_RDONLY)
        try:
            for path in paths:
                _same_and_inside(Root(opened, (str(root),)), root, _fill(path, names).lstrip("/"))
        finally:
            os.close(opened)


def _fill(path: str, names: dict[str, str]) -> str:
    for name, value in names.items():
        path = path.replace(name, value)
    return path


def _plant(place: Path, kind: str, names: dict[str, str]) -> None:
    try:
        if os.path.lexists(place) or os.path.realpath(place.parent) != str(place.parent):
            return
        place.parent.mkdir(parents=True, exist_ok=True)
        if kind == "file":
            place.write_bytes(b"")
        elif kind == "directory":
            place.mkdir()
        else:
            place.symlink_to(_fill(kind.removeprefix("link:"), names))
    except OSError:
        return


def _same_and_inside(root: Root, directory: Path, path: str) -> None:
    results = []
    for opener in (open_beneath, walk_beneath):
        try:
            fd = opener(root, path)
        except OSError as error:
            results.append(error.errno)
            continue
        assert identity(os.fstat(fd)) == identity((directory / path).stat())
        real = Path(os.path.realpath(directory / path))
        assert real == directory or directory in real.parents
        os.close(fd)
        results.append(0)
    # One may see a loop or the end of the path where the other sees the way out first.
    assert (results[0] == 0) == (results[1] == 0)
    if results[0] == errno.EXDEV:
        assert results[1] == errno.EXDEV
