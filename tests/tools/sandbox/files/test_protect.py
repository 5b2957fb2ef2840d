import os
from pathlib import Path

import pytest

from tools.core.errors import PermissionDeniedError
from tools.sandbox.files.openat import DirectoryOpener
from tools.sandbox.files.protect import CLOSED_TO_WRITES, Name, closed_names
from tools.sandbox.files.sandbox import Sandbox

pytestmark = pytest.mark.boundary

CLOSED = [
    *(".git/hooks/pre-commit", ".git\ufe0f/config", ".g\u034fi\U000e0100t/config"),
    *(".\u3164vscode\uffa0/tasks.json", ".hg/hgrc", "sub/.jj/repo/config.toml"),
    *(".amp/settings.json", ".github/mcp.json", "sub/.Renviron", ".git/config", ".git/new/file"),
    *(".git", ".GIT/config", ".Git/Hooks/post-merge", "sub/../.git/config", "./.git//config"),
    *("nested/repository/.git/config", "new/directory/.git/config"),
    *(".git/modules/part/hooks/post-checkout", ".mcp.json", ".MCP.json", "sub/.mcp.json"),
    *(".vscode/mcp.json", ".vscode/Tasks.JSON", ".cursor/mcp.json", "new/.cursor/mcp.json"),
    *(".claude/settings.json", ".claude/commands/x.md", ".bashrc", ".ssh/authorized_keys"),
    *("to-git/config", "to-git/hooks/pre-commit", "to-hooks/pre-commit", "to-config"),
    *("sub/to-root/.git/config", "sub/to-root/.mcp.json", "to-mcp", "to-vscode/mcp.json"),
    *("nested/.git/config", "nested/data/hooks/pre-commit", ".git\u200c/config"),
    *(".g\u200dit/config", "\uff0egit/config", ".\uff47it/config", ".git./config", ".git /config"),
    *(".git. . /hooks/pre-commit", "new/.MCP.JSON.", "new/.ba\u017fhrc", ".vscode/settings.json "),
    *(".idea/workspace.xml", ".husky/pre-commit", ".devcontainer/devcontainer.json", ".envrc"),
    *(".pre-commit-config.yaml", ".github/hooks/start.json", ".pdbrc", "sub/.Rprofile"),
    *(".config/fish/config.fish", "Library/LaunchAgents/x.plist", "bare/config"),
    *("bare/hooks/post-update", "bare/objects/info/alternates", "almost/HEAD", "almost/head"),
    *("almost/config", "almost/hooks/pre-commit", "common/objects/x", "worktree/commondir"),
    *("awaited.json", "awaiting-directory/settings.json", "sub/.vscode/settings.json"),
]

OPEN = [
    *(".gitignore", ".github/workflows/ci.yml", "git/config", "hooks/pre-commit", "mcp.json"),
    *("sub/config", "docs/vscode/settings.json", ".cursor/rules/style.mdc", "x.git/config"),
    *("sub/.npmrc", "package.json", "Makefile", "AGENTS.md", "CLAUDE.md"),
    *(".github/copilot-instructions.md", ".gitattributes", ".editorconfig", ".env"),
    *("almost/refs-of-another-kind", "sub/HEAD", "objects/refs/HEAD.txt", ".vs/x"),
    "config/fish/config.fish",
]


@pytest.fixture
def root(house: Path) -> Path:
    root = house / "root"
    for directory in (".git/hooks", "sub", ".vscode", "nested/data/hooks"):
        (root / directory).mkdir(parents=True)
    for directory in (
        *("bare/objects/info", "bare/refs", "almost/objects", "almost/refs", "common/refs"),
        "worktree",
    ):
        (root / directory).mkdir(parents=True)
    for head in ("bare/HEAD", "worktree/HEAD"):
        (root / head).write_bytes(b"ref: refs/heads/main\n")
    (root / ".git" / "config").write_bytes(b"[core]\n")
    (root / "common" / "config").write_bytes(b"[core]\n")
    (root / "nested" / "data" / "config").write_bytes(b"[core]\n")
    links = {
        "to-git": ".git",
        "to-hooks": "sub/../.git/hooks",
        "to-config": ".git/config",
        "sub/to-root": "..",
        "to-mcp": ".mcp.json",
        "to-vscode": ".vscode",
        "nested/.git": "data",
        ".envrc": "awaited.json",
        ".idea": "./sub/../awaiting-directory",
        "sub/.mcp.json": "../elsewhere.json",
        "sub/.vscode": "../nested",
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
    return root


@pytest.mark.parametrize("path", CLOSED)
def test_what_other_programs_obey_is_not_written(root: Path, path: str, sandbox: Sandbox) -> None:
    before = sorted(root.rglob("*"))
    with pytest.raises(PermissionDeniedError, match="protected") as caught:
        sandbox.write(path, b"evil")
    assert repr(path) in caught.value.message
    assert sorted(root.rglob("*")) == before
    with pytest.raises(PermissionDeniedError, match="protected"):
        sandbox.write(f"{root}/{path}", b"evil")


@pytest.mark.parametrize("path", OPEN)
def test_names_that_only_look_alike_are_written(path: str, sandbox: Sandbox) -> None:
    assert sandbox.write(path, b"x").created


def test_every_rule_holds_in_the_root_and_below(root: Path) -> None:
    sandbox = Sandbox(root)
    before = sorted(root.rglob("*"))
    for rule in map("/".join, CLOSED_TO_WRITES):
        for path in (rule, f"sub/{rule.upper()}", f"new/deep/{rule}", f"{rule}/below"):
            with pytest.raises(PermissionDeniedError, match="protected"):
                sandbox.write(path, b"x")
    assert sorted(root.rglob("*")) == before


def test_what_is_closed_to_writes_can_be_read_and_listed(sandbox: Sandbox) -> None:
    assert sandbox.read(".git/config", max_bytes=100).data == b"[core]\n"
    assert ".git/config" in [entry.path for entry in sandbox.list_directory(".git").entries]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A root that holds the program's own data, settings, and other names for them."""
    home = tmp_path / "home"
    (home / "data" / "index").mkdir(parents=True)
    (home / "config").mkdir()
    (home / "data" / "record.db").write_bytes(b"record")
    (home / "config" / "settings.toml").write_bytes(b"settings")
    (home / "config" / "other.toml").write_bytes(b"other")
    (home / "to-data").symlink_to("data")
    (home / "to-record").symlink_to("data/record.db")
    (home / "to-settings").symlink_to("to-config/settings.toml")
    (home / "to-config").symlink_to(home / "config")
    (home / "config" / "alias").symlink_to("../data/index")
    os.link(home / "config" / "settings.toml", home / "hard-link")
    return home


OWN = [
    *("data/record.db", "data/new.db", "data/index/segment", "data/new/directory/file"),
    *("./data/../data/record.db", "to-data/record.db", "to-record", "config/settings.toml"),
    *("config/../config/settings.toml", "to-config/settings.toml", "to-settings", "hard-link"),
    "config/alias/segment",
]


@pytest.mark.parametrize("path", OWN)
@pytest.mark.parametrize("spelled", ["plain", "linked"])
def test_the_programs_own_files_are_neither_read_nor_written(
    home: Path, path: str, spelled: str, open_directory: DirectoryOpener
) -> None:
    protected = {
        "plain": [home / "data", home / "config" / "settings.toml"],
        "linked": [home / "to-data", home / "to-settings"],
    }[spelled]
    sandbox = Sandbox(home, protected=protected, open_directory=open_directory)
    with pytest.raises(PermissionDeniedError, match="protected"):
        sandbox.write(path, b"evil")
    if (home / path).exists():
        for refused in (
            lambda: sandbox.read(path, max_bytes=10),
            lambda: sandbox.edit(path, lambda data: data),
        ):
            with pytest.raises(PermissionDeniedError, match="protected"):
                refused()
    assert (home / "data" / "record.db").read_bytes() == b"record"
    assert (home / "config" / "settings.toml").read_bytes() == b"settings"


@pytest.mark.parametrize("path", ["data", "data/index", "to-data", "config/alias"])
def test_the_programs_own_directories_are_not_listed(
    home: Path, path: str, open_directory: DirectoryOpener
) -> None:
    sandbox = Sandbox(home, protected=[home / "data"], open_directory=open_directory)
    with pytest.raises(PermissionDeniedError, match="protected"):
        sandbox.list_directory(path)
    listing = sandbox.list_directory(depth=5)
    assert not [entry for entry in listing.entries if entry.path.startswith("data/")]
    assert listing.unreadable == ["data"]


@pytest.mark.parametrize("path", ["later.toml", "LATER.toml", "config/../later.toml", "later/x"])
def test_a_protected_path_that_does_not_exist_yet_is_not_made(
    home: Path, path: str, open_directory: DirectoryOpener
) -> None:
    protected = [home / "later.toml", home / "later"]
    sandbox = Sandbox(home, protected=protected, open_directory=open_directory)
    with pytest.raises(PermissionDeniedError, match="protected"):
        sandbox.write(path, b"evil")
    assert not [entry for entry in home.iterdir() if entry.name.lower().startswith("later")]


def test_neighbours_of_the_programs_own_files_stay_open(home: Path) -> None:
    sandbox = Sandbox(home, protected=[home / "data", home / "config" / "settings.toml"])
    assert sandbox.read("config/other.toml", max_bytes=10).data == b"other"
    assert sandbox.write("config/new.toml", b"x").created
    assert sandbox.write("data-2/record.db", b"x").created


def test_protection_outside_the_root_takes_nothing_from_it(home: Path, tmp_path: Path) -> None:
    sandbox = Sandbox(home, protected=[tmp_path / "elsewhere", Path("/nowhere/at/all")])
    assert sandbox.read("data/record.db", max_bytes=10).data == b"record"
    assert sandbox.write("elsewhere", b"x").created


class Permitting:
    """Rules that open one place to a write."""

    def __init__(self, path: str) -> None:
        self._path = path

    def check(self, path: str, *, writing: bool) -> None:
        """Denies nothing."""

    def hides(self, _path: str) -> bool:
        return False

    def permits(self, path: str) -> tuple[Name, ...]:
        return tuple(closed_names(path.split("/"))) if path == self._path else ()


@pytest.mark.parametrize("path", [".vscode/tasks.json", "new/.husky/pre-commit", "sub/.envrc"])
def test_a_permit_opens_one_place_in_all_its_spellings_and_no_other(
    root: Path, path: str, sandbox: Sandbox
) -> None:
    sandbox = sandbox.ruled(Permitting(path))
    assert sandbox.write(f"sub/../{path}", b"1").created
    assert not sandbox.write(f"{root}/{path}", b"2").created
    assert (root / path).read_bytes() == b"2"
    beside = str(Path(path).with_name("other"))
    for other in (
        (beside, ".mcp.json", f"{path}/.git/config")
        if ".envrc" not in path
        else (".envrc", "sub/.mcp.json")
    ):
        with pytest.raises(PermissionDeniedError, match="protected"):
            sandbox.write(other, b"evil")


@pytest.mark.parametrize(
    ("link", "target", "path"),
    [
        (".zed", ".vscode", ".zed/tasks.json"),
        (".zed", "sub", ".zed/.mcp.json"),
        (".pdbrc", ".mcp.json", ".pdbrc"),
        (".pdbrc", ".git/config", ".pdbrc"),
        (".pdbrc", ".vscode/tasks.json", ".vscode/tasks.json"),
    ],
)
def test_a_permit_opens_nothing_that_a_link_makes_another_protected_place(
    root: Path, link: str, target: str, path: str, sandbox: Sandbox
) -> None:
    (root / ".vscode" / "tasks.json").write_bytes(b"before")
    (root / ".mcp.json").write_bytes(b"before")
    (root / link).symlink_to(target)
    sandbox = sandbox.ruled(Permitting(path))
    with pytest.raises(PermissionDeniedError, match="protected"):
        sandbox.write(path, b"evil")
    assert not (root / path).exists() or (root / path).read_bytes() != b"evil"


def test_a_permit_opens_no_file_of_the_programs_own(home: Path) -> None:
    own = home / ".vscode" / "mine.py"
    own.parent.mkdir()
    own.write_bytes(b"mine")
    sandbox = Sandbox(home, read_only=[own]).ruled(Permitting(".vscode/mine.py"))
    with pytest.raises(PermissionDeniedError, match="protected"):
        sandbox.write(".vscode/mine.py", b"evil")
