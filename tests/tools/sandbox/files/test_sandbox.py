import gc
import os
from pathlib import Path

import pytest

from tools.core.errors import (
    InvalidArgumentsError,
    NotFoundError,
    OutsideSandboxError,
    ToolError,
    UnavailableError,
)
from tools.sandbox.files.openat import DirectoryOpener
from tools.sandbox.files.sandbox import Sandbox

pytestmark = pytest.mark.boundary

WAYS_OUT = [
    *("..", "../", "../outside/secret.txt", "../../../../../../etc/passwd"),
    *("inside/../../outside/secret.txt", "inside/sub/../../../outside/secret.txt"),
    *("./../outside/secret.txt", ".//..//outside/secret.txt", "../root-sibling/secret.txt"),
    *("../root/../outside/secret.txt", "/etc/passwd", "/", "//etc/passwd", "/proc/self/environ"),
    *("to-file", "to-directory/secret.txt", "to-directory", "absolute-file"),
    *("absolute-directory/secret.txt", "chain-1", "inside/up", "inside/up/secret.txt"),
    *("to-parent/outside/secret.txt", "to-root-parent/secret.txt", "inside/sub/../../to-file"),
    *("to-nothing-outside", "to-proc/environ", "to-proc/root/etc/passwd", "to-cwd/pyproject.toml"),
    *("to-cwd", "to-root/etc/passwd", "to-parent-root/etc/passwd", "to-descriptors/0", "to-stdin"),
    *("inside/sub/far-up/passwd", "to-self-and-out/secret.txt", "slashes", "dots"),
    *("good-directory/up/secret.txt", "good-absolute-directory/sub/../../../outside/secret.txt"),
    *("./inside/./sub/.././../.././outside/secret.txt", "{root}/../outside/secret.txt"),
    *("{root}-sibling/secret.txt", "{root}//../root-sibling/secret.txt", "{root}/to-file"),
    *("/proc/self/cwd/root/file.txt", "/dev/fd/0"),
]


@pytest.fixture
def root(house: Path) -> Path:
    """A root with links of every kind, beside a directory that nothing may reach."""
    root = house / "root"
    outside = house / "outside"
    sibling = house / "root-sibling"
    (root / "inside" / "sub").mkdir(parents=True)
    for other in (outside, sibling):
        other.mkdir()
        (other / "secret.txt").write_bytes(b"secret")
    (root / "file.txt").write_bytes(b"inside")
    (root / "inside" / "file.txt").write_bytes(b"deep")
    links = {
        "to-file": "../outside/secret.txt",
        "to-directory": "../outside",
        "absolute-file": str(outside / "secret.txt"),
        "absolute-directory": str(outside),
        "chain-1": "chain-2",
        "chain-2": "inside/chain-3",
        "inside/chain-3": "../../outside/secret.txt",
        "inside/up": "../../outside",
        "to-parent": "..",
        "to-root-parent": "../root-sibling",
        "to-nothing-outside": "../outside/new.txt",
        "to-proc": "/proc/self",
        "to-cwd": "/proc/self/cwd",
        "to-root": "/proc/self/root",
        "to-parent-root": "/proc/thread-self/root/",
        "to-descriptors": "/dev/fd",
        "to-stdin": "/dev/stdin",
        "inside/sub/far-up": "../" * 40 + "etc",
        "to-self-and-out": "../root/../outside",
        "slashes": "//etc///passwd",
        "dots": "inside/./.././../outside/secret.txt",
        "good": "file.txt",
        "good-directory": "inside",
        "good-chain": "good-directory/../good",
        "good-absolute": str(root / "file.txt"),
        "good-absolute-directory": str(root / "inside"),
        "inside/good-up": "../file.txt",
        "dangling": "nothing-yet.txt",
        "loop": "loop",
        "loop-a": "loop-b",
        "loop-b": "loop-a",
        "loop-directory": "loop-directory/x",
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
    return root


def everything_outside(root: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes()
        for name in ("outside", "root-sibling")
        for path in (root.parent / name).rglob("*")
    } | {"names": " ".join(sorted(path.name for path in root.parent.iterdir())).encode()}


@pytest.mark.parametrize("path", WAYS_OUT)
def test_no_path_out_of_the_root_is_read(sandbox: Sandbox, path: str) -> None:
    path = path.format(root=sandbox.root)
    with pytest.raises(OutsideSandboxError) as caught:
        sandbox.read(path, max_bytes=100)
    assert repr(path) in caught.value.message
    assert caught.value.next_actions


@pytest.mark.parametrize("path", WAYS_OUT)
def test_no_path_out_of_the_root_is_written(sandbox: Sandbox, root: Path, path: str) -> None:
    path = path.format(root=root)
    before = everything_outside(root)
    for target in (path, f"{path}/new/file.txt"):
        with pytest.raises((OutsideSandboxError, InvalidArgumentsError)):
            sandbox.write(target, b"escaped")
    with pytest.raises((OutsideSandboxError, InvalidArgumentsError)):
        sandbox.edit(path, lambda _data: b"escaped")
    assert everything_outside(root) == before


@pytest.mark.parametrize("path", WAYS_OUT)
def test_no_path_out_of_the_root_is_listed(sandbox: Sandbox, path: str) -> None:
    path = path.format(root=sandbox.root)
    with pytest.raises(OutsideSandboxError):
        sandbox.open_directory(path)
    with pytest.raises(OutsideSandboxError):
        sandbox.list_directory(path)


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("file.txt", b"inside"),
        ("./file.txt", b"inside"),
        ("inside//file.txt", b"deep"),
        ("inside/../file.txt", b"inside"),
        ("inside/sub/../../file.txt", b"inside"),
        ("good", b"inside"),
        ("good-directory/file.txt", b"deep"),
        ("good-chain", b"inside"),
        ("good-absolute", b"inside"),
        ("good-absolute-directory/file.txt", b"deep"),
        ("good-absolute-directory/../file.txt", b"inside"),
        ("inside/good-up", b"inside"),
    ],
)
def test_paths_and_links_that_stay_inside_are_followed(
    sandbox: Sandbox, root: Path, path: str, content: bytes
) -> None:
    assert sandbox.read(path, max_bytes=100).data == content
    assert sandbox.read(f"{root}/{path}", max_bytes=100).data == content


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("", InvalidArgumentsError),
        ("a\0b", InvalidArgumentsError),
        ("\0", InvalidArgumentsError),
        ("\ud800", InvalidArgumentsError),
        ("a" * 256, InvalidArgumentsError),
        ("a/" * 2048 + "b", InvalidArgumentsError),
        ("a" * 5000, InvalidArgumentsError),
        (".", InvalidArgumentsError),
        ("inside", InvalidArgumentsError),
        ("inside/", InvalidArgumentsError),
        ("inside/..", InvalidArgumentsError),
        ("good-directory", InvalidArgumentsError),
        ("file.txt/x", InvalidArgumentsError),
        ("file.txt/", InvalidArgumentsError),
        ("file.txt/..", InvalidArgumentsError),
        ("loop", InvalidArgumentsError),
        ("loop-a", InvalidArgumentsError),
        ("loop-a/x", InvalidArgumentsError),
        ("loop-directory", InvalidArgumentsError),
        ("missing", NotFoundError),
        ("missing/../file.txt", NotFoundError),
        ("missing/file.txt", NotFoundError),
        ("dangling", NotFoundError),
        ("~/file.txt", OutsideSandboxError),
        ("..txt", NotFoundError),
        ("inside\\..\\file.txt", NotFoundError),
    ],
)
def test_a_bad_path_is_named_with_what_to_do(
    sandbox: Sandbox, path: str, error: type[ToolError]
) -> None:
    with pytest.raises(error) as caught:
        sandbox.read(path, max_bytes=100)
    assert caught.value.message


@pytest.mark.parametrize(
    "path", ["", "a\0b", "\ud800", "a" * 5000, "loop", ".", "inside", "file.txt/x"]
)
def test_a_bad_path_is_not_written_either(sandbox: Sandbox, path: str) -> None:
    with pytest.raises(InvalidArgumentsError):
        sandbox.write(path, b"")


def test_a_missing_directory_has_no_parent(sandbox: Sandbox, root: Path) -> None:
    before = everything_outside(root)
    for path in ("missing/../x", "missing/../../x", "missing/a/../../../x"):
        with pytest.raises(NotFoundError):
            sandbox.write(path, b"")
    assert everything_outside(root) == before
    assert not (root / "missing").exists()


@pytest.mark.parametrize(
    ("path", "relative"),
    [
        ("a/./b", "a/b"),
        ("a//b/", "a/b"),
        ("a/../b", "b"),
        (".", "."),
        ("{root}/a", "a"),
        ("{root}", "."),
    ],
)
def test_a_path_is_made_relative_as_it_is_spelled(root: Path, path: str, relative: str) -> None:
    assert Sandbox(root).relative(path.format(root=root)) == relative


@pytest.mark.parametrize("path", ["..", "../x", "a/../../x", "/etc", "{root}-sibling/secret.txt"])
def test_a_path_spelled_as_outside_has_no_relative_form(root: Path, path: str) -> None:
    with pytest.raises(OutsideSandboxError):
        Sandbox(root).relative(path.format(root=root))


@pytest.mark.parametrize("prefix", ["-sibling", "x", "-sibling/../outside"])
def test_a_prefix_of_the_roots_name_is_not_the_root(
    sandbox: Sandbox, root: Path, prefix: str
) -> None:
    with pytest.raises(OutsideSandboxError):
        sandbox.read(f"{root}{prefix}/secret.txt", max_bytes=100)


def test_a_root_that_is_a_link_is_known_by_both_names(
    root: Path, open_directory: DirectoryOpener
) -> None:
    alias = root.parent / "alias"
    alias.symlink_to(root)
    sandbox = Sandbox(alias, open_directory=open_directory)
    assert sandbox.root == alias
    for spelling in (alias, root):
        assert sandbox.read(f"{spelling}/file.txt", max_bytes=100).data == b"inside"


def test_a_root_that_is_missing_or_a_file_is_unavailable(root: Path) -> None:
    for wrong in (root / "missing", root / "file.txt"):
        with pytest.raises(UnavailableError, match="root"):
            Sandbox(wrong).read("x", max_bytes=1)


def test_the_root_of_the_file_system_can_be_the_root(open_directory: DirectoryOpener) -> None:
    sandbox = Sandbox(Path("/"), open_directory=open_directory)
    with sandbox.open_read("/proc/self/status") as file:
        assert file.read(5) == b"Name:"


def test_magic_links_of_proc_are_not_followed(root: Path, open_directory: DirectoryOpener) -> None:
    sandbox = Sandbox(Path("/proc"), open_directory=open_directory)
    held = os.open(root / "file.txt", os.O_RDONLY)
    directory = os.open(root, os.O_RDONLY)
    try:
        for path in (
            f"self/fd/{held}",
            f"self/fd/{directory}/file.txt",
            "self/root/etc/passwd",
            "self/cwd/pyproject.toml",
            "self/exe",
            f"/proc/{os.getpid()}/root/etc/passwd",
        ):
            with pytest.raises(OutsideSandboxError):
                sandbox.read(path, max_bytes=10)
    finally:
        os.close(held)
        os.close(directory)


@pytest.mark.parametrize("size", [0, 1, 99, 100, 101, 5_000_000])
def test_a_read_says_whether_it_has_the_whole_file(sandbox: Sandbox, root: Path, size: int) -> None:
    (root / "sized").write_bytes(b"x" * size)
    found = sandbox.read("sized", max_bytes=100)
    assert (len(found.data), found.size, found.truncated) == (min(size, 100), size, size > 100)


def test_no_descriptor_is_left_open(sandbox: Sandbox) -> None:
    gc.collect()  # the roots that other tests held
    before = len(list(Path("/proc/self/fd").iterdir()))
    for path in [*WAYS_OUT, "file.txt", "missing", "loop", "inside", "good-chain", ""]:
        for call in (
            lambda path=path: sandbox.read(path, max_bytes=10),
            lambda path=path: sandbox.write(f"{path}/x/y", b""),
            lambda path=path: sandbox.list_directory(path, depth=3),
        ):
            try:
                call()
            except ToolError:
                continue
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_listing_shows_levels_in_order_and_follows_no_link(sandbox: Sandbox, root: Path) -> None:
    listing = sandbox.list_directory(depth=10)
    paths = [entry.path for entry in listing.entries]
    kinds = {entry.path: entry.type for entry in listing.entries}
    assert paths == sorted(paths, key=lambda path: (path.count("/"), path))
    assert kinds["to-directory"] == kinds["good-directory"] == "symlink"
    assert kinds["inside/sub"] == "directory"
    assert set(paths) == {str(path.relative_to(root)) for path in root.rglob("*")}
    assert not listing.truncated


@pytest.mark.parametrize(("depth", "limit"), [(1, 1), (1, 5), (2, 24), (3, 1000)])
def test_a_listing_is_bounded_and_says_so(sandbox: Sandbox, depth: int, limit: int) -> None:
    whole = sandbox.list_directory(depth=depth, limit=10_000)
    part = sandbox.list_directory(depth=depth, limit=limit)
    assert part.entries == whole.entries[:limit]
    assert part.truncated == (len(whole.entries) > limit)


def test_a_listing_of_a_directory_names_paths_from_the_root(sandbox: Sandbox) -> None:
    for path in ("inside", "./inside/", "inside/sub/.."):
        assert "inside/file.txt" in [entry.path for entry in sandbox.list_directory(path).entries]


@pytest.mark.parametrize("form", ["~/{}", "$HOME/{}", "${{HOME}}/{}", "file://{home}/{}"])
def test_what_a_shell_would_expand_is_told_and_never_followed(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    root = tmp_path / "work"
    (root / "~").mkdir(parents=True)
    (root / "~" / "a b").write_text("in the root")
    (tmp_path / "outside").write_text("secret")
    sandbox = Sandbox(root)
    with pytest.raises(OutsideSandboxError, match=f"means '{tmp_path}/outside'"):
        sandbox.read(form.format("outside", home=tmp_path), max_bytes=9)
    with pytest.raises(InvalidArgumentsError) as caught:
        sandbox.read(form.format("work/~/a b", home=tmp_path), max_bytes=9)
    assert caught.value.next_actions == ("Give './~/a b', relative to the root.",)
    assert sandbox.read("./~/a b", max_bytes=20).data == b"in the root"


def test_a_file_url_is_decoded(root: Path) -> None:
    sandbox = Sandbox(root)
    for url in (f"file://{root}/a%20b", f"FILE://localhost{root}/a%20b", f"file:{root}/x/../a%20b"):
        with pytest.raises(InvalidArgumentsError) as caught:
            sandbox.write(url, b"")
        assert caught.value.suggestions == ("a b",)
