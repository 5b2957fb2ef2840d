"""Paths that rules deny are denied to programs: hidden, read-only, undone, or a person is asked."""

import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp_types import ElicitResult, ErrorData

from tests.tools.sandbox.processes.conftest import opened as open_at
from tests.tools.sandbox.processes.conftest import use_only
from tools.core.spec import Effect
from tools.policy.matching import DeniedPlace
from tools.policy.paths import PathPattern
from tools.sandbox.processes.models import Command, Level

pytestmark = [
    pytest.mark.slow,
    pytest.mark.boundary,
    pytest.mark.skipif(sys.platform != "linux", reason="its levels are Linux's"),
]

DENY = (
    "read(secrets/**)",
    "read(**/.env)",
    "write(docs/**)",
    "write(**/*.lock)",
    "read(/etc/hostname)",
)

READS = {
    "a file": "cat secrets/key",
    "through its parent": "cat app/../secrets/key",
    "a link that was there": "cat link/key",
    "from within": "cd secrets && cat key",
    "another interpreter": "python3 -c 'print(open(\"app/.env\").read())'",
    "under another name": "mv secrets open; cat open/key",
    "by way of its directory": "mv app open; cat open/.env",
    "a hard link": "ln app/.env open; cat open",
    "an archive": "tar cf - . 2>/dev/null | cat",
    "without the mount": "umount secrets; cat secrets/key",
    "of another process": "cat /proc/1/root$PWD/secrets/key /proc/self/cwd/.env",
    "of git": "git add -A; git diff --cached; git stash; git stash show -p",
    "of the system": "cat /etc/hostname",
}

WRITES = {
    "in place": "sed -i s/kept/lost/ docs/a.md",
    "moved over": "mv app/code.py docs/a.md",
    "moved away": "mv docs open",
    "removed": "rm -rf docs",
    "cut": "truncate -s0 docs/a.md",
    "a new file": "touch docs/new",
    "a new name": "mkdir -p deep/down; touch deep/down/a.lock",
    "a name in other letters": "touch app/A.LOCK",
    "a renamed file": "mv app/code.py app/code.lock",
    "a renamed directory": "mkdir more; mv more more.lock",
    "a link": "ln -s app app.lock",
    "a directory that hides it": "mkdir m; touch m/a.lock; chmod 0 m",
}


def fill(root: Path) -> None:
    for path, content in {
        "secrets/key": "the key",
        "app/.env": "the key",
        ".env": "the key",
        "docs/a.md": "kept",
        "app/code.py": "code",
    }.items():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(content)
    if not (root / "link").exists():
        (root / "link").symlink_to("secrets")


def names(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if ".git" not in path.parts}


@asynccontextmanager
async def opened(open_crib: Any, level: Level, **flags: Any) -> AsyncIterator[Any]:
    """The product at one level, with a person who says what `crib.answer` is."""
    if level is Level.NONE:
        flags["system__sandbox"] = "off"
    rules = {"policy__deny": DENY, "policy__allow": ("scope:system", "run_code")}
    async with open_crib(**rules | flags) as crib:
        if level is not Level.NONE:
            use_only(crib.app.machine.processes, level)
        crib.asked, crib.answer = [], "decline"

        async def say(context: Any, params: Any) -> ElicitResult | ErrorData:  # the protocol has it
            crib.asked.append(params.message)
            return ElicitResult(action=crib.answer, content={"answer": "once"})

        async with Client(crib.app.server, elicitation_callback=say) as crib.client:
            fill(crib.root)
            yield crib


async def test_programs_read_nothing_that_a_rule_denies(open_crib: Any) -> None:
    async with opened(open_crib, Level.BUBBLEWRAP) as crib:
        before = names(crib.root)
        await crib.text("bash", command="git init -q")
        for attack, script in READS.items():
            said = await crib.text("bash", command=script)
            assert "the key" not in said, attack
            assert f"{socket.gethostname()}\n" not in said, attack
            assert before <= names(crib.root), attack
        code = "print(open('secrets/key').read())"
        assert "rule 'read(secrets/**)'" in await crib.text("execute_python_code", code=code)
        said = await crib.text("run_code", code="print(await tools.bash(command='cat app/.env'))")
        assert "rule 'read(**/.env)'" in said
        assert "rule 'read(secrets/**)'" in await crib.text("bash", command="ls", cwd="secrets")
        assert not crib.asked


async def test_programs_leave_what_a_rule_denies_to_writes_as_it_was(open_crib: Any) -> None:
    async with opened(open_crib, Level.BUBBLEWRAP) as crib:
        for attack, script in WRITES.items():
            await crib.text("bash", command=script)
            assert (crib.root / "docs" / "a.md").read_text() == "kept", attack
            assert not [each for each in names(crib.root) if each.lower().endswith(".lock")], attack
            assert os.listdir(crib.root / "docs") == ["a.md"], attack  # noqa: PTH208  # blocks for no time
            (crib.root / "app" / "code.py").write_text("code")
        said = await crib.text("bash", command="touch app/b.lock")
        assert "taken away, as the rule 'write(**/*.lock)' denies it: app/b.lock" in said
        assert not crib.asked


async def test_git_takes_a_hidden_directory_for_no_deleted_one(open_crib: Any) -> None:
    async with opened(open_crib, Level.BUBBLEWRAP, policy__deny=()) as crib:
        await crib.text("bash", command="git init -q && git add secrets")
    async with opened(open_crib, Level.BUBBLEWRAP) as crib:
        said = await crib.text("bash", command="git add -A 2>/dev/null; git ls-files secrets")
        assert "secrets/key" in said


@pytest.mark.parametrize("level", [Level.LANDLOCK, Level.NONE])
async def test_a_person_is_asked_where_nothing_enforces_the_rule(
    open_crib: Any, level: Level
) -> None:
    async with opened(open_crib, level) as crib:
        for name, arguments in (
            ("bash", {"command": "cat secrets/key"}),
            ("execute_python_code", {"code": "print(open('secrets/key').read())"}),
            ("run_code", {"code": "print(await tools.bash(command='cat secrets/key'))"}),
        ):
            said = await crib.text(name, **arguments)
            assert "permission_denied: " in said
            assert "the key" not in said
            assert "The rule 'read(secrets/**)' is not enforced" in crib.asked.pop()
        crib.answer = "accept"
        ran = await crib.call("bash", command="cat secrets/key; echo lost > secrets/key")
        assert ran["stdout"] == "the key"
        crib.answer = "decline"
        [change] = (await crib.call("list_changes"))["changes"]
        said = await crib.text("undo_change", change_ids=[change["id"]])
        assert "the key" not in said
        assert "'read(secrets/**)'" in said


@pytest.mark.parametrize("level", [Level.BUBBLEWRAP, Level.LANDLOCK, Level.NONE])
async def test_what_does_not_exist_yet_asks_nobody_and_is_undone(
    open_crib: Any, level: Level
) -> None:
    async with opened(open_crib, level, policy__deny=("write(new/**)", "read(none/**)")) as crib:
        said = await crib.text("bash", command="mkdir new; touch new/a")
        assert "taken away, as the rule 'write(new/**)' denies it: new" in said
        assert not (crib.root / "new").exists()
        assert not crib.asked


async def test_a_rule_against_all_writes_leaves_the_root_read_only(open_crib: Any) -> None:
    async with opened(open_crib, Level.BUBBLEWRAP, policy__deny=("write(**)",)) as crib:
        await crib.text("bash", command="echo lost | tee docs/a.md new; git init")
        assert (crib.root / "docs" / "a.md").read_text() == "kept"
        assert not {"new", ".git"} & {path.name for path in crib.root.iterdir()}


async def test_a_link_that_may_not_be_written_asks(open_crib: Any) -> None:
    async with opened(open_crib, Level.BUBBLEWRAP, policy__deny=("write(link)",)) as crib:
        await crib.failure("bash", command="rm link")
        assert "link is a link, which programs can replace" in crib.asked.pop()


@pytest.mark.parametrize("level", [Level.BUBBLEWRAP, Level.LANDLOCK, Level.NONE])
@pytest.mark.parametrize("above", ["now", "*"])
async def test_a_rule_whose_path_leads_through_a_link_is_enforced_or_asks(
    open_crib: Any, level: Level, above: str
) -> None:
    deny = (f"read({above}/secrets/**)",)
    async with opened(open_crib, level, policy__deny=deny) as crib:
        (crib.root / "rel" / "1" / "secrets").mkdir(parents=True)
        (crib.root / "rel" / "1" / "secrets" / "key").write_text("the key")
        (crib.root / "now").symlink_to("rel/1")
        said = await crib.text("bash", command="cat now/secrets/key rel/1/secrets/key")
        assert "the key" not in said
        assert bool(crib.asked) is (level is not Level.BUBBLEWRAP)


async def test_a_rule_that_closes_to_writes_what_is_behind_a_link_asks(open_crib: Any) -> None:
    async with opened(open_crib, Level.BUBBLEWRAP, policy__deny=("write(now/docs/**)",)) as crib:
        (crib.root / "rel" / "docs").mkdir(parents=True)
        (crib.root / "now").symlink_to("rel")
        await crib.failure("bash", command="touch now/docs/a")
        assert "now is a link, which programs can replace" in crib.asked.pop()


async def test_more_directories_than_are_searched_ask(
    open_crib: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.sandbox.processes.confinement.denied_paths.MOST_FOLDERS", 2)
    async with opened(open_crib, Level.BUBBLEWRAP) as crib:
        await crib.failure("bash", command="ls")
        assert "The rule 'read(**/.env)' is not enforced" in crib.asked.pop()
    async with opened(open_crib, Level.BUBBLEWRAP, policy__deny=DENY[:1]) as crib:
        assert "Permission denied" in await crib.text("bash", command="cat secrets/key")
        assert not crib.asked


async def test_a_rule_that_comes_while_a_program_runs_takes_nothing_away(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "kept.lock").touch()
    places: list[DeniedPlace] = []
    async with open_at(root, Level.BUBBLEWRAP, denied=lambda: tuple(places)) as processes:
        program = await processes.start(Command(argv=("sleep", "100")))
        pattern = PathPattern.parse("**/*.lock", (str(root),))
        places.append(DeniedPlace("write(**/*.lock)", pattern, (Effect.WRITE,)))
        await program.aclose()
    assert program.notes == ()
    assert (root / "kept.lock").exists()
