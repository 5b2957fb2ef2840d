"""`toolcrib doctor --repair`, and the damages that `toolcrib doctor` tells from each other."""

import json
import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.server.cli.checks.conftest import check_failure, findings
from tests.server.cli.conftest import Command


def _execute(data: Path, statement: str) -> None:
    with closing(sqlite3.connect(data / "toolcrib.db")) as connection:
        connection.execute(statement)
        connection.commit()


def loose(data: Path) -> None:
    _execute(data, "UPDATE chunks SET context_seq = 99 WHERE seq = 1")


def without_words(data: Path) -> None:
    _execute(data, "DELETE FROM lexical_fresh WHERE chunk_seq > 1")


def with_words_of_what_is_gone(data: Path) -> None:
    _execute(data, "UPDATE lexical_fresh SET chunk_seq = 99 WHERE chunk_seq = 1")
    _execute(
        data,
        "INSERT INTO lexical_fresh SELECT 1, user_id, length, terms, counts FROM lexical_fresh"
        " WHERE chunk_seq = 2",
    )


def with_garbled_words(data: Path) -> None:
    _execute(
        data,
        "INSERT INTO lexical_segments (user_id, live, tier, size, chunks, lengths)"
        " VALUES ('local', 1, 0, 1, x'00', x'00')",
    )


def without_vectors(data: Path) -> None:
    shutil.rmtree(data / "chroma")


def with_garbled_vectors(data: Path) -> None:
    (data / "chroma" / "chroma.sqlite3").write_bytes(b"no database " * 1000)


@pytest.mark.parametrize(
    ("harm", "subject", "says"),
    [
        (loose, "SQLite", "1 rows of chunks refer to missing rows"),
        (without_words, "Words", "wrong for 2 chunks"),
        (with_words_of_what_is_gone, "Words", "wrong for 1 chunks"),
        (with_garbled_words, "Words", "buffer size"),
    ],
)
def test_a_damage_is_told_from_others(
    cli: Command, data: Path, harm: Callable[[Path], None], subject: str, says: str
) -> None:
    harm(data)
    check_failure(cli, subject, says)


@pytest.mark.slow
@pytest.mark.parametrize("harm", [without_words, with_garbled_words])
def test_repair_mends_the_index_of_words_and_says_so(
    cli: Command, data: Path, harm: Callable[[Path], None]
) -> None:
    _check_repair(cli, data, harm, "index of words")


@pytest.mark.slow
@pytest.mark.usefixtures("everyone_indexed")
@pytest.mark.parametrize("harm", [without_vectors, with_garbled_vectors])
def test_repair_mends_the_index_of_vectors_and_says_so(
    cli: Command, data: Path, harm: Callable[[Path], None]
) -> None:
    _check_repair(cli, data, harm, "index of vectors")


def _check_repair(cli: Command, data: Path, harm: Callable[[Path], None], says: str) -> None:
    before = cli("query", "sourdough loaf", "--json").out
    harm(data)
    ended = cli("doctor", "--repair", "--json")
    assert ended.code == 0
    repairs = [row for row in json.loads(ended.out) if row["subject"] == "Repair"]
    assert all(row["ok"] for row in repairs)
    assert says in repairs[0]["detail"]
    assert cli("query", "sourdough loaf", "--json").out == before
    again = findings(cli("doctor", "--repair", "--json"))
    assert again["Repair"] == (True, "There was nothing to do.")


@pytest.mark.usefixtures("everyone_indexed")
@pytest.mark.parametrize("kind", ["a file", "a broken link"])
def test_repair_moves_away_what_cannot_be_the_index(cli: Command, data: Path, kind: str) -> None:
    shutil.rmtree(data / "chroma")
    if kind == "a file":
        (data / "chroma").write_text("somebody's")
    else:
        (data / "chroma").symlink_to(data.parent / "work" / "notes" / "bread.md" / "not there")
    ended = cli("doctor", "--repair", "--json")
    assert ended.code == 0
    (aside,) = data.glob("chroma-unusable-*")
    repairs = [row["detail"] for row in json.loads(ended.out) if row["subject"] == "Repair"]
    assert f"Moved what could not be used as the index of vectors to {aside}" in repairs
    assert aside.is_symlink() if kind == "a broken link" else aside.read_text() == "somebody's"
    assert "3 vectors in" in findings(ended)["Vectors"][1]


def test_a_record_that_is_gone_fails_and_is_not_begun_anew(cli: Command, data: Path) -> None:
    cli("backup", "copy")
    (data / "toolcrib.db").unlink()
    for command in (("doctor", "--repair"), ("query", "bread"), ("export", "out"), ("import", ".")):
        ended = cli(*command)
        assert ended.code == 1
        said = "".join((ended.out + ended.err).split())
        assert "missing" in said
        assert f"restore{data.parent}/work/copy--force" in said
        assert not (data / "toolcrib.db").exists()


@pytest.mark.usefixtures("everyone_indexed")
def test_repair_finishes_what_was_left_half_done(cli: Command, data: Path) -> None:
    _execute(data, "INSERT INTO embed_queue SELECT 1, seq, 'local', 0 FROM models")
    ended = cli("doctor", "--repair")
    assert ended.code == 0
    assert "1 embedded, 1 delivered to the vector index" in " ".join(ended.out.split())


def test_repair_does_not_touch_a_damaged_record(cli: Command, data: Path) -> None:
    (data / "toolcrib.db").write_bytes(b"no database " * 1000)
    before = (data / "toolcrib.db").read_bytes()
    ended = cli("doctor", "--repair", "--json")
    assert ended.code == 1
    assert "from a backup" in findings(ended)["Repair"][1]
    assert (data / "toolcrib.db").read_bytes() == before


def test_repair_removes_what_killed_writers_left_and_nothing_else(
    cli: Command, data: Path, work: Path
) -> None:
    old = time.time() - 7200
    name = ".toolcrib-0123456789abcdef.tmp"
    stale = [work / name, work / "notes" / name, data / (name + "-journal")]
    others = [
        work / "notes" / ".toolcrib-fedcba9876543210.tmp",  # young
        work / ".toolcrib-0123456789ABCDEF.tmp",
        work / ".toolcrib-0123456789abcdef.tmp.md",
        work / "x.toolcrib-0123456789abcdef.tmp",
        work.parent / name,  # outside
    ]
    for path in (*stale, *others):
        path.write_text("half")
        if path != others[0]:
            os.utime(path, (old, old))
    (work / "link").symlink_to(work.parent)
    (work / ".toolcrib-aaaaaaaaaaaaaaaa.tmp").symlink_to(others[-1])
    ended = cli("doctor", "--repair", "--json")
    told = [row["detail"] for row in json.loads(ended.out) if row["subject"] == "Repair"]
    assert sorted(told) == sorted(f"Removed {path}" for path in stale)
    assert not any(path.exists() for path in stale)
    assert all(path.exists() for path in others)
    assert (work / ".toolcrib-aaaaaaaaaaaaaaaa.tmp").is_symlink()
