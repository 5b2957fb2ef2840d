"""Rules of the policy, judged of the place that a path turned out to be."""

import hashlib
import os
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from tools.core.errors import OutsideSandboxError, PermissionDeniedError
from tools.sandbox.files.openat import DirectoryOpener
from tools.sandbox.files.protect import Name
from tools.sandbox.files.sandbox import Sandbox

pytestmark = pytest.mark.boundary


class Denying:
    """Denies the places that fit one of some patterns, and writes down what it is asked."""

    def __init__(self, *patterns: str) -> None:
        self._patterns = patterns
        self.asked: list[tuple[str, bool]] = []

    def check(self, path: str, *, writing: bool) -> None:
        self.asked.append((path, writing))
        if self.hides(path):
            raise PermissionDeniedError(f"denied: {path}")

    def hides(self, path: str) -> bool:
        return any(fnmatchcase(path, pattern) for pattern in self._patterns)

    def permits(self, _path: str) -> tuple[Name, ...]:
        return ()


SECRET = ("secret", "secret/*", ".env", "*/.env")

WAYS_TO_THE_SECRET = [
    *("secret/file.txt", "./secret//file.txt", "open/../secret/file.txt"),
    *("secret/../secret/file.txt", "{root}/secret/file.txt", "to-file", "to-directory/file.txt"),
    *("open/to-directory/file.txt", "absolute-file", "absolute-directory/file.txt", "chain"),
    *("open/up/secret/file.txt", "to-root/secret/file.txt"),
    *("to-root/to-directory/../secret/file.txt", ".env", "open/up/.env", "to-env", "open/.env"),
]


@pytest.fixture
def root(house: Path) -> Path:
    root = house / "root"
    for directory in ("secret/deep", "open/deep"):
        (root / directory).mkdir(parents=True)
    for file in ("secret/file.txt", "secret/deep/file.txt", ".env", "open/.env"):
        (root / file).write_bytes(b"secret")
    (root / "open" / "file.txt").write_bytes(b"open")
    links = {
        "to-file": "secret/file.txt",
        "to-directory": "secret",
        "open/to-directory": "../secret",
        "absolute-file": str(root / "secret" / "file.txt"),
        "absolute-directory": str(root / "secret"),
        "chain": "open/chain",
        "open/chain": "../to-file",
        "open/up": "..",
        "to-root": ".",
        "to-env": "open/.env",
        "to-open": "open",
        "to-new": "secret/new.txt",
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
    return root


@pytest.fixture
def ruled(sandbox: Sandbox) -> Sandbox:
    return sandbox.ruled(Denying(*SECRET))


def everything(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("path", WAYS_TO_THE_SECRET)
def test_no_way_to_a_denied_place_gets_around_the_rule(
    root: Path, path: str, ruled: Sandbox
) -> None:
    spelled = path.format(root=root)
    assert (root / spelled).read_bytes() == b"secret"  # so the way leads there
    before = everything(root)
    ways: list[Callable[[], object]] = [
        lambda: ruled.read(spelled, max_bytes=10),
        lambda: ruled.open_read(spelled),
        lambda: ruled.write(spelled, b"evil"),
        lambda: ruled.edit(spelled, lambda _data: b"evil"),
    ]
    for way in ways:
        with pytest.raises(PermissionDeniedError, match="denied"):
            way()
    assert everything(root) == before


@pytest.mark.parametrize(
    "path", ["secret", "secret/deep", "to-directory", "to-directory/deep", "open/up/secret"]
)
def test_no_way_to_a_denied_directory_lists_or_opens_it(
    root: Path, path: str, open_directory: DirectoryOpener
) -> None:
    sandbox = Sandbox(root, open_directory=open_directory).ruled(Denying(*SECRET))
    with pytest.raises(PermissionDeniedError, match="denied"):
        sandbox.list_directory(path)
    with pytest.raises(PermissionDeniedError, match="denied"):
        sandbox.open_directory(path)


@pytest.mark.parametrize(
    "path",
    ["secret/new.txt", "secret/new/deep.txt", "to-directory/new/x", "to-new", "open/up/secret/x"],
)
def test_nothing_is_made_in_a_denied_place(root: Path, path: str, ruled: Sandbox) -> None:
    before = sorted(root.rglob("*"))
    with pytest.raises(PermissionDeniedError, match="denied"):
        ruled.write(path, b"evil")
    assert sorted(root.rglob("*")) == before


def test_rules_are_asked_about_the_real_place(root: Path, open_directory: DirectoryOpener) -> None:
    rules = Denying()
    sandbox = Sandbox(root, open_directory=open_directory).ruled(rules)
    sandbox.read("to-root/to-open/up/open/file.txt", max_bytes=1)
    sandbox.write("to-open/new/deep.txt", b"")
    sandbox.list_directory("to-open/deep/..")
    sandbox.list_directory()
    os.close(sandbox.open_directory("to-open/deep"))
    assert list(dict.fromkeys(rules.asked)) == [
        ("open/file.txt", False),
        ("open/new/deep.txt", True),
        ("open", False),
        (".", False),
        ("open/deep", False),
    ]


def test_a_root_that_is_a_link_is_judged_by_its_own_place(root: Path) -> None:
    (root.parent / "alias").symlink_to(root)
    sandbox = Sandbox(root.parent / "alias").ruled(Denying(*SECRET))
    assert sandbox.read("open/file.txt", max_bytes=9).data == b"open"
    with pytest.raises(PermissionDeniedError, match="denied"):
        sandbox.read("to-file", max_bytes=9)


def test_listings_leave_out_what_the_rules_hide(ruled: Sandbox) -> None:
    names = [entry.path for entry in ruled.list_directory(depth=5).entries]
    assert "open/file.txt" in names
    assert not [name for name in names if name.startswith("secret") or name.endswith(".env")]
    assert "to-open/.env" not in [entry.path for entry in ruled.list_directory("to-open").entries]
    assert len(ruled.list_directory(limit=3).entries) == 3


def test_what_a_search_finds_is_hidden_by_rules_and_by_protection(root: Path) -> None:
    (root / "data").mkdir()
    (root / "data" / "record.db").write_bytes(b"")
    plain = Sandbox(root, protected=[root / "data"])
    ruled = plain.ruled(Denying(*SECRET))
    for path in ("secret", "secret/file.txt", "secret/deep/file.txt", ".env", "open/.env"):
        assert ruled.hides(path)
        assert not plain.hides(path)
    for sandbox in (plain, ruled):
        for path in ("data", "data/record.db", "missing/x"):
            assert sandbox.hides(path)
        for path in (".", "open", "open/file.txt", "to-open"):
            assert not sandbox.hides(path)
        with pytest.raises(OutsideSandboxError):
            sandbox.read("../x", max_bytes=1)
        assert sandbox.hides("../x")


def test_a_hard_link_is_judged_by_the_name_it_is_opened_by(root: Path) -> None:
    os.link(root / "secret" / "file.txt", root / "open" / "same.txt")
    sandbox = Sandbox(root).ruled(Denying(*SECRET))
    assert sandbox.read("open/same.txt", max_bytes=10).data == b"secret"


class Unreadable:
    """Denies that anything is read."""

    def check(self, path: str, *, writing: bool) -> None:
        if not writing:
            raise PermissionDeniedError(f"denied: {path}")

    def hides(self, _path: str) -> bool:
        return True

    def permits(self, _path: str) -> tuple[Name, ...]:
        return ()


def test_a_write_tells_no_digest_of_what_may_not_be_read(root: Path, sandbox: Sandbox) -> None:
    sandbox = sandbox.ruled(Unreadable())
    for expected in ("0" * 64, hashlib.sha256(b"secret").hexdigest()):
        with pytest.raises(PermissionDeniedError, match=r"denied: secret/file\.txt"):
            sandbox.write("secret/file.txt", b"x", expected_sha256=expected)
    assert (root / "secret" / "file.txt").read_bytes() == b"secret"
    sandbox.write("secret/file.txt", b"x")
    assert (root / "secret" / "file.txt").read_bytes() == b"x"


def test_a_directory_descriptor_stays_inside(root: Path, open_directory: DirectoryOpener) -> None:
    sandbox = Sandbox(root, open_directory=open_directory)
    (root / "out").symlink_to("..")
    for path in ("..", "out", "/etc", "open/../.."):
        with pytest.raises(OutsideSandboxError):
            sandbox.open_directory(path)
    fd = sandbox.open_directory("to-open")
    try:
        assert os.path.samestat(os.fstat(fd), (root / "open").stat())
    finally:
        os.close(fd)


def test_rules_leave_the_sandbox_itself_as_it_is(root: Path) -> None:
    sandbox = Sandbox(root)
    sandbox.ruled(Denying(*SECRET))
    assert sandbox.read("secret/file.txt", max_bytes=10).data == b"secret"
