import os
import resource
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest

from storage.database import MOST_IDLE, Database
from storage.errors import SchemaVersionError, StorageUnavailableError

OPEN_AND_WRITE = """
import sys
from pathlib import Path
from storage.database import Database
from storage.errors import StorageError
try:
    database = Database(Path(sys.argv[1]))
    with database.write() as connection:
        connection.execute("INSERT INTO meta VALUES (?, '1')", (str(__import__("os").getpid()),))
except StorageError as error:
    print(type(error).__name__, error.message, *error.suggestions)
else:
    print("written")
"""

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def _count(database: Database) -> int:
    with database.read() as connection:
        return int(connection.execute("SELECT count(*) FROM meta").fetchone()[0])


def _put(database: Database, *keys: str) -> None:
    with database.write() as connection:
        for key in keys:
            connection.execute("INSERT INTO meta VALUES (?, '1')", (key,))


def _advice(error: pytest.ExceptionInfo[StorageUnavailableError]) -> str:
    (advice,) = error.value.suggestions
    return advice


def test_a_new_database_has_the_newest_schema_in_wal_mode(database: Database) -> None:
    with database.read() as connection:
        assert connection.execute("PRAGMA user_version").fetchone()[0] >= 1
        assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
        assert connection.execute("PRAGMA foreign_keys").fetchone()[0] == 1
        assert connection.execute("PRAGMA synchronous").fetchone()[0] == 2


def test_only_a_write_that_says_so_does_not_wait_for_the_disk(database: Database) -> None:
    def synchronous(connection: sqlite3.Connection) -> int:
        return int(connection.execute("PRAGMA synchronous").fetchone()[0])

    with database.write() as connection:
        assert synchronous(connection) == 2
    with database.write(synced=False) as connection:
        assert synchronous(connection) == 1
    with database.write() as connection:
        assert synchronous(connection) == 2


def test_processes_that_open_a_new_database_at_once_migrate_it_once(tmp_path: Path) -> None:
    path = tmp_path / "data" / "toolcrib.db"
    children = [
        subprocess.Popen(
            [sys.executable, "-c", OPEN_AND_WRITE, str(path)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(5)
    ]
    assert [child.communicate()[0].strip() for child in children] == ["written"] * 5
    database = Database(path)
    assert _count(database) == 5
    database.close()


@pytest.mark.parametrize(
    ("version", "says", "first"),
    [
        (999, r"has schema 999; this version of Toolcrib knows up to \d+\.", "Upgrade Toolcrib."),
        (
            24,
            r"has schema 24 of a development version; .* reads 25 and later\.",
            "To carry the data over",
        ),
    ],
)
def test_another_schema_is_refused_by_its_version_and_left_alone(
    database: Database, version: int, says: str, first: str
) -> None:
    with database.write() as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    database.close()
    before = {path: path.read_bytes() for path in database.path.parent.iterdir()}
    with pytest.raises(SchemaVersionError, match=says) as error:
        Database(database.path)
    assert error.value.suggestions[0].startswith(first)
    assert "the command `export FILE` of the version that wrote it" in error.value.suggestions[-1]
    assert {path: path.read_bytes() for path in database.path.parent.iterdir()} == before


@pytest.mark.parametrize("marked", [True, False])
def test_a_record_of_the_same_schema_with_other_tables_is_refused_and_left_alone(
    tmp_path: Path, *, marked: bool
) -> None:
    schema, path = tmp_path / "schema", tmp_path / "data" / "toolcrib.db"
    schema.mkdir()
    script = schema / "0025_first.sql"
    script.write_text("CREATE TABLE meta (key TEXT, value TEXT);")
    database = Database(path, schema)
    if not marked:
        with database.write() as connection:
            connection.execute("PRAGMA application_id = 0")
    database.close()
    script.write_text("CREATE TABLE meta (\n    key TEXT, -- a name\n    value TEXT\n);")
    Database(path, schema).close()  # the same tables
    before = path.read_bytes()
    script.write_text("CREATE TABLE meta (key TEXT, value TEXT, note TEXT);")
    with pytest.raises(SchemaVersionError, match="has other tables than this version") as error:
        Database(path, schema)
    assert error.value.suggestions[0].startswith("To carry the data over")
    assert path.read_bytes() == before


def test_a_later_migration_upgrades_a_record_in_place(tmp_path: Path) -> None:
    schema = tmp_path / "schema"
    schema.mkdir()
    (schema / "0025_first.sql").write_text("CREATE TABLE meta (key TEXT, value TEXT);")
    Database(tmp_path / "data" / "toolcrib.db", schema).close()
    (schema / "0026_more.sql").write_text("ALTER TABLE meta ADD COLUMN note TEXT;")
    database = Database(tmp_path / "data" / "toolcrib.db", schema)
    with database.read() as connection:
        assert connection.execute("SELECT key, value, note FROM meta").fetchall() == []
        assert connection.execute("PRAGMA user_version").fetchone()[0] == 26
    database.close()


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "toolcrib.db"
    path.write_bytes(b"not a database, though somebody's only copy of it" * 100)
    before = path.read_bytes()
    with pytest.raises(StorageUnavailableError, match="not a database") as error:
        Database(path)
    assert "restore a backup" in _advice(error)
    assert path.read_bytes() == before


def test_a_shortage_of_open_files_is_named(database: Database) -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with database.read():  # the next one needs a connection of its own
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
            with pytest.raises(StorageUnavailableError, match="Too many open files") as error:
                _count(database)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert "ulimit -n" in _advice(error)


def test_a_database_damaged_in_the_middle_is_said_to_be(database: Database) -> None:
    _put(database, *(f"{number}{'x' * 500}" for number in range(200)))
    database.close()
    with database.path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(database.path.stat().st_size - 4096))
    with (
        pytest.raises(StorageUnavailableError, match="malformed") as error,
        closing(Database(database.path)) as damaged,
    ):
        _count(damaged)
    assert "damaged" in _advice(error)


def test_a_directory_in_the_place_of_the_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "toolcrib.db"
    path.mkdir()
    with pytest.raises(StorageUnavailableError, match="Is a directory") as error:
        Database(path)
    assert "Move away the file or directory at that path" in _advice(error)


def test_a_file_in_the_place_of_the_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file")
    with pytest.raises(StorageUnavailableError, match="File exists") as error:
        Database(tmp_path / "data" / "toolcrib.db")
    assert "Move away the file or directory at that path" in _advice(error)


def test_a_directory_without_the_right_to_write_is_refused_with_advice(tmp_path: Path) -> None:
    path = tmp_path / "data" / "toolcrib.db"
    Database(path).close()
    # Root may write anywhere by two capabilities, which the child goes without.
    powers = "-dac_override,-dac_read_search"
    drop = ["setpriv", "--bounding-set", powers, "--inh-caps", powers] if os.geteuid() == 0 else []
    if drop and shutil.which("setpriv") is None:
        pytest.skip("root cannot be kept from writing without setpriv")
    for mode in (0o555, 0o000):
        path.parent.chmod(mode)
        child = subprocess.run(
            [*drop, sys.executable, "-c", OPEN_AND_WRITE, str(path)],
            capture_output=True,
            text=True,
            check=False,
        )
        path.parent.chmod(0o700)
        assert child.stdout.startswith("StorageUnavailableError"), child.stderr
        assert "Give yourself write permission" in child.stdout


def test_a_full_disk_is_told_and_nothing_of_the_write_stays(database: Database) -> None:
    _put(database, "before")
    with database.read() as connection:  # the one idle connection, which the next write takes
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(StorageUnavailableError, match="full") as error:
        _put(database, *(f"{number}{'x' * 4000}" for number in range(100)))
    assert "Free some disk space" in _advice(error)
    assert _count(database) == 1
    with database.write() as connection:
        connection.execute("PRAGMA max_page_count = 100000")
    _put(database, "after")
    assert _count(database) == 2


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["/bin/mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)],
        check=False,
        capture_output=True,
    )
    if mounted.returncode:
        pytest.skip("this machine lets nobody mount a file system")
    yield disk
    subprocess.run(["/bin/umount", "-l", str(disk)], check=True)


@as_root
def test_a_disk_that_is_really_full_keeps_all_that_was_acknowledged(small_disk: Path) -> None:
    database = Database(small_disk / "data" / "toolcrib.db")
    kept = 0

    def fill() -> None:
        nonlocal kept
        while True:
            _put(database, f"{kept}{'x' * 20_000}")
            kept += 1

    with pytest.raises(StorageUnavailableError) as error:
        fill()
    assert "disk" in _advice(error)
    assert kept > 10
    assert _count(database) == kept
    database.close()
    again = Database(database.path)
    assert _count(again) == kept
    again.close()


def test_a_file_that_was_removed_or_replaced_takes_no_more_writes(database: Database) -> None:
    moved = database.path.rename(database.path.with_name("moved"))
    _check_nothing_is_taken(database)
    database.path.touch()  # another file under the name
    _check_nothing_is_taken(database)
    assert database.path.stat().st_size == 0
    moved.rename(database.path)
    with database.write() as connection:
        connection.execute("INSERT INTO meta (key, value) VALUES ('a', 'b')")


def _check_nothing_is_taken(database: Database) -> None:
    with pytest.raises(StorageUnavailableError, match="removed or replaced") as caught:
        database.get_meta("a")
    assert caught.value.suggestions == ("Restart Toolcrib.",)
    with pytest.raises(StorageUnavailableError, match="removed or replaced"), database.write():
        pytest.fail("It was let in.")


def test_what_is_written_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    earlier = os.umask(0)
    try:
        database = Database(tmp_path / "data" / "toolcrib.db")
        _put(database, "one")
    finally:
        os.umask(earlier)
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700
    modes = {
        path.name: stat.S_IMODE(path.stat().st_mode) for path in database.path.parent.iterdir()
    }
    names = ("setup.lock", "toolcrib.db", "toolcrib.db-wal", "toolcrib.db-shm")
    assert modes == dict.fromkeys(names, 0o600)
    database.close()


def test_a_write_that_raises_leaves_nothing(database: Database) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        _put(database, "half", "half")
    assert database.get_meta("half") is None


def test_a_read_block_sees_one_snapshot_while_others_write(database: Database) -> None:
    _put(database, "one")
    with database.read() as connection:
        first = connection.execute("SELECT count(*) FROM meta").fetchone()[0]
        _put(database, "two", "three")
        again = connection.execute("SELECT count(*) FROM meta").fetchone()[0]
    assert (first, again, _count(database)) == (1, 1, 3)


def test_after_many_readers_at_once_few_connections_stay_open(database: Database) -> None:
    with ExitStack() as readers:
        used = [readers.enter_context(database.read()) for _ in range(5 * MOST_IDLE)]
    is_open = []
    for each in used:
        with suppress(sqlite3.ProgrammingError):  # it is closed
            is_open.append(each.total_changes)
    assert len(is_open) == MOST_IDLE
    database.set_meta("written", "all the same")
    assert database.get_meta("written") == "all the same"


def test_no_reader_ever_sees_half_a_write(database: Database) -> None:
    counts: set[int] = set()
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            counts.add(_count(database))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(60):
        _put(database, *(f"{number}.{part}" for part in range(7)))
    done.set()
    for reader in readers:
        reader.join()
    assert {count % 7 for count in counts} == {0}
    assert _count(database) == 420


def test_writers_of_one_process_wait_for_each_other(database: Database) -> None:
    with database.write() as connection:
        connection.execute("INSERT INTO meta VALUES ('sum', '0')")

    def add() -> None:
        for _ in range(25):
            with database.write() as connection:
                (value,) = connection.execute("SELECT value FROM meta").fetchone()
                connection.execute("UPDATE meta SET value = ?", (str(int(value) + 1),))

    writers = [threading.Thread(target=add) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert database.get_meta("sum") == "100"


def test_a_second_database_in_the_process_leaves_the_first_ones_locks(tmp_path: Path) -> None:
    first = Database(tmp_path / "toolcrib.db")
    _put(first, "one")
    second = Database(tmp_path / "toolcrib.db")
    # A process that closes last removes the WAL: this one must see that the first still reads.
    code = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT * FROM meta')"
    subprocess.run(
        [sys.executable, "-c", f"{code}.fetchall(); c.close()", str(first.path)], check=True
    )
    assert first.path.with_name("toolcrib.db-wal").exists()
    assert _count(first) == _count(second) == 1
    second.close()
    first.close()


def test_a_defect_of_ours_is_no_fault_of_the_disk(database: Database) -> None:
    _put(database, "one")
    with pytest.raises(sqlite3.IntegrityError):
        _put(database, "one")
