import json
import shutil
import socket
import sqlite3
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

import pytest

from storage.database import RECORD, Database
from storage.index.embedders.bundled import MiniLMEmbedder
from storage.library import Library
from storage.memory.captured import Captured
from storage.models import Identity
from tests.server.cli.checks.conftest import check_failure, findings
from tests.server.cli.conftest import Command

pytestmark = pytest.mark.slow


def test_a_sound_installation_is_all_ok_and_it_says_where_it_looked(
    cli: Command, data: Path, work: Path
) -> None:
    ended = cli("doctor", "--json")
    assert ended.code == 0
    found = findings(ended)
    checks = (
        *("Python", "Root", "Data directory", "SQLite", "Embedder", "Cross-encoder", "Chroma"),
        *("Words", "Vectors"),
    )
    assert [found[check][0] for check in checks] == [True] * len(checks)
    assert f"{data / 'toolcrib.db'} with 3 chunks, 0 of them not embed" in found["SQLite"][1]
    assert found["Vectors"][1].startswith("none needed: no user has more than 2,000")
    assert found["Words"][1] == f"every chunk is indexed in {data / 'toolcrib.db'}"
    assert f"Toolcrib {version('toolcrib')} at " in found["Command"][1]
    assert found["Hooks"] == (None, "none has fired yet")
    assert "MB without models" in found["Memory"][1]
    assert "config.toml does not exist" in found["Settings file"][1]
    assert found["Root"][1] == f"{work} (default)"
    ok, others = found["Other clients"]
    assert ok is None
    for client in ("Claude Desktop", "Claude Code", "VS Code", "Cursor", "Codex"):
        assert client in others


def test_the_last_hook_of_each_client_is_shown(cli: Command, data: Path) -> None:
    with closing(Database(data / RECORD)) as database:
        Captured(database, Identity()).note_fired("codex", "Stop")
    assert findings(cli("doctor", "--json"))["Hooks"][1].startswith("Codex: Stop, 20")


def test_an_embedder_that_takes_over_is_told(cli: Command, data: Path) -> None:
    with sqlite3.connect(data / "toolcrib.db") as connection:
        connection.execute("UPDATE models SET scheme = 'the one of yesterday'")
    connection.close()
    Library(data, MiniLMEmbedder()).close()
    ended = cli("doctor", "--json")
    assert ended.code == 0
    told = findings(ended)["SQLite"][1]
    assert f"0 of them embedded again by {MiniLMEmbedder.model_id}, which takes over" in told


def test_another_embedder_is_tried_and_its_library_named(
    cli: Command, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fastembed", None)  # as if it were not installed
    monkeypatch.setenv("TOOLCRIB_EMBEDDER__KIND", "fastembed")
    ended = cli("doctor", "--json")
    assert ended.code == 1
    ok, told = findings(ended)["Embedder"]
    assert ok is False
    assert told.endswith('Run: pip install "toolcrib[fastembed]"')


def test_a_chroma_server_that_is_down_is_told(
    cli: Command, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    monkeypatch.setenv("TOOLCRIB_CHROMA__URL", url)
    ended = cli("doctor", "--json")
    assert ended.code == 1
    (told,) = [detail for ok, detail in findings(ended).values() if ok is False]
    assert f"{url} cannot be reached" in told


def test_a_missing_data_directory_is_no_failure_and_is_not_made(cli: Command, work: Path) -> None:
    (work.parent / "home" / ".cursor").mkdir(parents=True)
    before = sorted(work.parent.rglob("*"))
    ended = cli("doctor")
    assert ended.code == 0
    assert "created on first use" in " ".join(ended.out.split())  # wherever the line ends
    (line,) = (line for line in ended.out.splitlines() if line.startswith("Cursor"))
    assert line.split()[:3] == ["Cursor", "without", "Toolcrib:"]
    assert sorted(work.parent.rglob("*")) == before


@pytest.mark.parametrize("waiting", [0, 1])
def test_vectors_where_nothing_can_be_written_are_neither_damaged_nor_waited_for(
    data: Path, waiting: int
) -> None:
    with closing(sqlite3.connect(data / "toolcrib.db")) as connection:
        connection.execute(
            "INSERT INTO vector_outbox (chunk_seq, user_id, model_seq)"
            " SELECT seq, user_id, 1 FROM chunks LIMIT ?",
            (waiting,),
        )
        connection.commit()
    read_only = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" || exit 99'
    doctor = 'exec "$2" doctor --json --data-dir "$1"'
    command = Path(sysconfig.get_path("scripts"), "toolcrib")
    if (unshare := shutil.which("unshare")) is None:
        pytest.skip("no unshare")
    ended = subprocess.run(
        [unshare, "-rm", "sh", "-c", f"{read_only}; {doctor}", "sh", data, command],
        check=False,
        capture_output=True,
        text=True,
    )
    if ended.returncode not in {0, 1}:
        pytest.skip(f"no namespace with mounts of its own can be made here: {ended.stderr}")
    rows = {row["subject"]: row for row in json.loads(ended.stdout)}
    assert [name for name, row in rows.items() if row["ok"] is False] == [
        "Data directory",
        "Vectors",
    ]
    assert "is not writable" in rows["Vectors"]["detail"]
    assert "Searches read the vectors in the record" in rows["Vectors"]["detail"]


def newer(data: Path) -> None:
    with sqlite3.connect(data / "toolcrib.db") as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()


def older(data: Path) -> None:
    with closing(sqlite3.connect(data / "toolcrib.db")) as connection:
        connection.execute("PRAGMA user_version = 24")


def damaged(data: Path) -> None:
    (data / "toolcrib.db").write_bytes(b"no database " * 1000)


def without_index(data: Path) -> None:
    shutil.rmtree(data / "chroma")


def with_damaged_index(data: Path) -> None:
    (data / "chroma" / "chroma.sqlite3").write_bytes(b"no database " * 1000)


@pytest.mark.usefixtures("everyone_indexed")
@pytest.mark.parametrize(
    ("harm", "subject", "says"),
    [
        (newer, "SQLite", "schema 99"),
        (older, "SQLite", "the command `export FILE` of the version that wrote it"),
        (damaged, "SQLite", "restore a backup"),
        (without_index, "Vectors", "0 of 3 vectors"),
        (with_damaged_index, "Vectors", "rebuilt from the record"),
    ],
)
def test_what_is_broken_is_the_one_check_that_fails(
    cli: Command, data: Path, harm: Callable[[Path], None], subject: str, says: str
) -> None:
    harm(data)
    check_failure(cli, subject, says)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--data-dir", "notes/bread.md"], "is not a directory"),
        (["--config", "nowhere.toml"], "does not exist"),
        (["--root", "nowhere"], "is not an existing directory"),
    ],
)
def test_settings_that_cannot_be_used_are_a_finding_beside_the_others(
    cli: Command, arguments: list[str], says: str
) -> None:
    ended = cli("doctor", "--json", *arguments)
    found = findings(ended)
    assert ended.code == 1
    assert found["Settings"][0] is False
    assert says in found["Settings"][1]
    assert found["Chroma"][0] is True


@pytest.mark.usefixtures("everyone_indexed")
def test_an_index_that_was_lost_is_filled_again_by_the_next_deletion(
    cli: Command, data: Path
) -> None:
    with_damaged_index(data)
    assert cli("delete", "notes/bread.md", "--yes").code == 0
    assert cli("doctor").code == 0


def test_skills_are_counted_and_told_where_no_client_is_shown_them(
    cli: Command, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert findings(cli("doctor", "--json"))["Skills"] == (
        True,
        "4 skills, all listed by skills/list",
    )
    for name in ("big", "nameless", "unreadable"):
        (work / name).mkdir()
        (work / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: Helps.\n---\n")
    for number in range(512):
        (work / "big" / f"{number}").touch()
    (work / "nameless" / "SKILL.md").write_text("# Helps")
    (work / "unreadable" / "SKILL.md").write_bytes(b"\0")
    monkeypatch.setenv("TOOLCRIB_SKILLS__DIRECTORIES", str(work))
    ok, said = findings(cli("doctor", "--json"))["Skills"]
    assert (ok, said.splitlines()) == (
        True,
        [
            "6 skills, 4 of them listed by skills/list",
            "big is not: It has more than 512 files, or more than 16,777,216 bytes.",
            "nameless is not: It has no front matter.",
            f"{work / 'unreadable'} is left out: 'SKILL.md' is not text (1 bytes).",
        ],
    )


def test_function_files_are_loaded_and_their_problems_told(
    cli: Command, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ok, said = findings(cli("doctor", "--json"))["Function files"]
    assert (ok, said) == (True, "none: the setting functions.paths names no file")
    file = work / "crafts.py"
    monkeypatch.setenv("TOOLCRIB_FUNCTIONS__PATHS", str(file))
    file.write_text("def saw(length: float) -> float: return length / 2")
    assert findings(cli("doctor", "--json"))["Function files"] == (True, f"1 tool from {file}")
    file.write_text("def saw(")
    ended = cli("doctor", "--json")
    assert ended.code == 1
    assert findings(ended)["Function files"] == (
        False,
        f"{file}:1:8: SyntaxError: '(' was never closed",
    )
