from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import httpx2
import numpy as np
import pytest

from storage.errors import VectorIndexError
from storage.index.vectors import ChromaDirectory, ChromaServer, VectorIndex
from storage.library import Library
from storage.models import Identity, SearchFilter

if TYPE_CHECKING:
    from storage.index.embedders.base import Vectors


Opener = Callable[[], VectorIndex]


@pytest.fixture
def home(tmp_path: Path) -> ChromaDirectory:
    return ChromaDirectory(tmp_path / "chroma")


@pytest.fixture
def opener(home: ChromaDirectory) -> Iterator[Opener]:
    opened: list[VectorIndex] = []

    def make() -> VectorIndex:
        opened.append(VectorIndex(home, library="test"))
        return opened[-1]

    yield make
    for index in opened:
        index.close()


def _vectors(count: int) -> Vectors:
    wild = np.random.default_rng(5).normal(size=(count, 16)).astype(np.float32)
    unit: Vectors = wild / np.linalg.norm(wild, axis=1, keepdims=True)
    return unit


def test_the_nearest_by_cosine_come_first(opener: Opener) -> None:
    index, vectors = opener(), _vectors(300)
    index.upsert(1, "ann", range(1, 301), vectors)
    exact = [int(at) + 1 for at in np.argsort(-(vectors @ vectors[7]))[:10]]
    assert index.nearest(1, "ann", vectors[7], 10) == exact
    assert exact[0] == 8


def test_more_vectors_than_chroma_takes_at_once_are_all_kept(opener: Opener) -> None:
    index, vectors = opener(), _vectors(6000)
    index.upsert(1, "ann", range(6000), vectors)
    assert index.count(1, "ann") == 6000
    index.delete(1, "ann", range(5990))
    assert sorted(index.nearest(1, "ann", vectors[0], 50)) == list(range(5990, 6000))


def test_an_upsert_replaces_and_a_deletion_of_nothing_is_no_error(opener: Opener) -> None:
    index, vectors = opener(), _vectors(3)
    index.upsert(1, "ann", [1, 2], vectors[:2])
    index.upsert(1, "ann", [1], vectors[2:])
    assert index.count(1, "ann") == 2
    assert index.nearest(1, "ann", vectors[2], 1) == [1]
    index.delete(1, "ann", [2, 99])
    index.delete(1, "ann", [2, 99])
    assert index.count(1, "ann") == 1


def test_fewer_than_asked_for_are_all_there_are(opener: Opener) -> None:
    index, vectors = opener(), _vectors(3)
    assert index.nearest(1, "ann", vectors[0], 10) == []
    index.upsert(1, "ann", [1, 2, 3], vectors)
    assert sorted(index.nearest(1, "ann", vectors[0], 10)) == [1, 2, 3]


@pytest.mark.parametrize("other", ["", "Ann", "ann ", "ann/..", "a" * 500, "änn", "\x00"])
def test_a_user_sees_nothing_of_another(opener: Opener, other: str) -> None:
    index, vectors = opener(), _vectors(2)
    index.upsert(1, "ann", [1], vectors[:1])
    assert index.nearest(1, other, vectors[0], 5) == []
    index.upsert(1, other, [2], vectors[1:])
    index.delete(1, other, [1])
    assert index.nearest(1, "ann", vectors[0], 5) == [1]
    assert index.nearest(1, other, vectors[0], 5) == [2]


def test_what_was_written_is_there_after_opening_again(opener: Opener) -> None:
    first, vectors = opener(), _vectors(5)
    first.upsert(1, "ann", range(5), vectors)
    first.close()
    assert opener().nearest(1, "ann", vectors[3], 1) == [3]
    assert first.nearest(1, "ann", vectors[4], 1) == [4]


def test_a_new_generation_opens_the_index_again_and_the_same_one_does_not(opener: Opener) -> None:
    index = opener()
    index.follow(1)
    index.count(1, "ann")
    client = index._client
    index.follow(1)
    assert index._client is client
    index.wrote(2)
    index.follow(2)
    assert index._client is client
    index.follow(3)
    assert index._client is None


def test_a_search_reopens_the_index_once_a_second_and_a_writer_each_time(
    opener: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = opener()
    index.follow(1)
    index.count(1, "ann")
    client = index._client
    index.follow(2, at_once=False)
    assert index._client is client
    index.follow(2)
    assert index._client is None
    index.count(1, "ann")
    monkeypatch.setattr("storage.index.vectors.REOPEN_SECONDS", 0)
    index.follow(3, at_once=False)
    assert index._client is None


def test_models_have_indexes_of_their_own_which_go_one_by_one(opener: Opener) -> None:
    index, vectors = opener(), _vectors(3)
    index.upsert(1, "ann", [1], vectors[:1])
    index.upsert(11, "ann", [2], vectors[1:2, :8])
    index.upsert(11, "bob", [3], vectors[2:, :8])
    assert index.nearest(11, "ann", vectors[0, :8], 5) == [2]
    index.drop_users([(1, "ann")])
    assert (index.count(1, "ann"), index.count(11, "ann"), index.count(11, "bob")) == (0, 1, 1)
    index.drop_users([(11, "ann"), (11, "bob")])
    index.drop_users([(11, "ann"), (11, "bob")])
    assert (index.count(11, "ann"), index.count(11, "bob")) == (0, 0)


def test_a_collection_that_another_process_rebuilt_is_found_again(opener: Opener) -> None:
    ours, theirs, vectors = opener(), opener(), _vectors(3)
    theirs.upsert(1, "ann", [1, 2], vectors[:2])
    assert ours.count(1, "ann") == 2
    theirs.drop_users([(1, "ann")])
    assert ours.count(1, "ann") == 0
    theirs.upsert(1, "ann", [1, 2], vectors[:2])
    assert ours.count(1, "ann") == 2
    theirs.drop_users([(1, "ann")])
    theirs.upsert(1, "ann", [2, 3], vectors[1:])
    assert ours.nearest(1, "ann", vectors[2], 1) == [3]
    theirs.drop_users([(1, "ann")])
    theirs.upsert(1, "ann", [2, 3], vectors[1:])
    ours.delete(1, "ann", [3])
    assert theirs.nearest(1, "ann", vectors[2], 5) == [2]


def test_many_users_share_few_files(opener: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.index.vectors.MOST_OPEN", 4)
    index, vectors = opener(), _vectors(1100)  # more than Chroma keeps in its log
    opened = []
    for number in range(20):
        index.upsert(1, f"user{number}", range(1100), vectors)
        opened.append(len(list(Path("/proc/self/fd").iterdir())))
    assert max(opened) < opened[0] + 4 * 20
    for number in range(20):
        assert index.nearest(1, f"user{number}", vectors[number], 1) == [number]


def test_asking_makes_nothing(opener: Opener) -> None:
    index = opener()
    assert index.count(1, "ann") == 0
    index.delete(1, "ann", [1])
    assert index.nearest(1, "ann", _vectors(1)[0], 1) == []
    with index._open() as client:
        assert client.list_collections() == []


def test_a_dropped_index_is_empty_and_usable(opener: Opener, home: ChromaDirectory) -> None:
    index, vectors = opener(), _vectors(2)
    index.upsert(1, "ann", [1, 2], vectors)
    index.drop()
    assert not any(home.directory.iterdir())
    assert index.count(1, "ann") == 0
    index.upsert(1, "ann", [2], vectors[1:])
    assert index.nearest(1, "ann", vectors[0], 5) == [2]


@pytest.mark.parametrize("count", [1000, 1999, 3000])
def test_an_index_is_whole_until_its_graph_is_lost(
    opener: Opener, home: ChromaDirectory, count: int
) -> None:
    index, vectors = opener(), _vectors(count)
    assert index.is_whole(1, "ann", vectors[0])
    index.upsert(1, "ann", range(count), vectors)
    assert index.is_whole(1, "ann", vectors[0])
    index.close()
    (graph,) = (path for path in home.directory.iterdir() if path.is_dir())
    for file in graph.iterdir():
        file.unlink()
    graph.rmdir()
    assert index.count(1, "ann") == count
    assert not index.is_whole(1, "ann", vectors[0])


def test_an_index_is_whole_though_its_graph_has_no_path_to_some_of_many_equal_vectors(
    opener: Opener,
) -> None:
    index, copies = opener(), np.repeat(_vectors(1), 2000, axis=0)
    index.upsert(1, "ann", range(2000), copies)
    assert index.count(1, "ann") == 2000
    assert index.is_whole(1, "ann", _vectors(2)[1])


@pytest.mark.parametrize(
    "garbage", [b"not a database" * 1000, b"SQLite format 3\x00" + b"\xff" * 5000]
)
def test_a_damaged_index_is_an_error_until_it_is_dropped(
    opener: Opener, home: ChromaDirectory, garbage: bytes
) -> None:
    index, vectors = opener(), _vectors(2)
    home.directory.mkdir()
    (home.directory / "chroma.sqlite3").write_bytes(garbage)
    for _ in range(2):
        with pytest.raises(VectorIndexError) as error:
            index.upsert(1, "ann", [1, 2], vectors)
        assert str(home.directory) in error.value.message
        assert "rebuilt from the record" in error.value.suggestions[0]
    index.drop()
    index.upsert(1, "ann", [1, 2], vectors)
    assert index.nearest(1, "ann", vectors[0], 1) == [1]


def test_a_file_in_the_place_of_the_directory_is_an_error(
    opener: Opener, home: ChromaDirectory
) -> None:
    index = opener()
    home.directory.write_text("a file")
    with pytest.raises(VectorIndexError, match="File exists"):
        index.count(1, "ann")


def test_a_server_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.index.vectors.GREETING_SECONDS", 0.1)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        index = VectorIndex(ChromaServer(url), library="x")
        for _ in range(3):  # the first waits in vain, and the others are told so
            with pytest.raises(VectorIndexError, match="cannot be reached"):
                index.nearest(1, "ann", np.ones(3, dtype=np.float32), 1)
        silent.accept()[0].close()
        silent.setblocking(False)  # noqa: FBT003  # the standard library's own form
        with pytest.raises(BlockingIOError):
            silent.accept()


pytestmark = pytest.mark.slow  # half a minute, for the server alone five seconds a start

ANN = Identity(user_id="ann")
BOB = Identity(user_id="bob")


class Server:
    """`chroma run`, which can be stopped and started again."""

    def __init__(self, directory: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.directory = directory
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = shutil.which("chroma", path=str(Path(sys.executable).parent))
        assert command is not None
        place = ["--host", "127.0.0.1", "--port", str(self.port), "--path", str(self.directory)]
        self.process = subprocess.Popen(
            [command, "run", *place], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while self.process.poll() is None:
            try:
                if httpx2.get(f"{self.url}/api/v2/heartbeat", timeout=1).status_code == 200:
                    return
            except httpx2.TransportError:
                continue
        pytest.fail("chroma run did not start")

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("server"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def server(started: Server) -> Server:
    if started.process is None:
        started.start()
    return started


@pytest.fixture
def served(
    server: Server, library_of: Callable[..., Library], world: ModuleType, tmp_path: Path
) -> Callable[[str], Library]:
    """Opens a library whose vectors the server keeps."""
    return lambda name: library_of(world.HashEmbedder(), tmp_path / name, chroma_url=server.url)


def _drain_despite_failures(library: Library, world: ModuleType) -> None:
    for _ in range(3):
        try:
            world.drain(library)
        except VectorIndexError:
            continue
        return
    pytest.fail("the vector index was not repaired")


def test_what_is_delivered_is_found_by_every_process_at_once(
    served: Callable[[str], Library], world: ModuleType, tmp_path: Path
) -> None:
    one, two = served("data"), served("data")
    world.add_many(one, "a", 2100)
    world.drain(one)
    assert world.lost(two, "a", 2100, 100) == []
    world.add_many(two, "b", 30)
    world.drain(two)
    assert one.vectors.count(1, "ann") == 2130
    assert world.lost(one, "b", 30, 3) == []
    assert one.shelf(ANN).search(world.content_of("b", 7), SearchFilter(), 1).hits[0].dense
    two.shelf(ANN).delete_document("text", "b")
    world.drain(two)
    assert one.vectors.count(1, "ann") == 2100
    assert not (tmp_path / "data" / "chroma").exists()


@pytest.mark.usefixtures("everyone_indexed")
def test_libraries_that_share_a_server_see_nothing_of_each_other(
    served: Callable[[str], Library], world: ModuleType
) -> None:
    one, two = served("one"), served("two")
    world.add_many(one, "a", 20)
    world.add_many(one, "c", 5, BOB)
    world.add_many(two, "b", 30)
    for library in (one, two):
        world.drain(library)
    one.vectors.drop()
    assert (one.vectors.count(1, "ann"), one.vectors.count(1, "bob")) == (0, 0)
    assert two.vectors.count(1, "ann") == 30


def test_a_server_that_was_emptied_is_filled_again_after_a_search(
    served: Callable[[str], Library], world: ModuleType
) -> None:
    library = served("data")
    world.add_many(library, "a", 2100)
    world.drain(library)
    library.vectors.drop()
    content = world.content_of("a", 7)
    assert library.shelf(ANN).search(content, SearchFilter(), 1).hits[0].chunk.content == content
    _drain_despite_failures(library, world)
    assert library.vectors.count(1, "ann") == 2100


@pytest.mark.usefixtures("everyone_indexed")
def test_an_old_models_collections_leave_the_server(
    served: Callable[[str], Library],
    library_of: Callable[..., Library],
    server: Server,
    world: ModuleType,
    tmp_path: Path,
) -> None:
    first = served("data")
    world.add_many(first, "a", 20)
    world.drain(first)
    library = library_of(world.HashEmbedder("other", 32), tmp_path / "data", chroma_url=server.url)
    world.drain(library)
    assert (library.vectors.count(1, "ann"), library.vectors.count(2, "ann")) == (0, 20)


def test_while_the_server_is_down_searches_go_on_and_what_is_new_is_delivered_afterwards(
    served: Callable[[str], Library], world: ModuleType, server: Server
) -> None:
    library = served("data")
    world.add_many(library, "a", 2100)
    world.drain(library)
    server.stop()
    world.add_many(library, "b", 40)
    with pytest.raises(VectorIndexError, match=server.url):
        world.drain(library)
    for prefix in ("a", "b"):
        content = world.content_of(prefix, 7)
        found = library.shelf(ANN).search(content, SearchFilter(), 5)
        assert (found.mode, found.hits[0].chunk.content) == ("hybrid", content)
        assert found.hits[0].dense == pytest.approx(1)
    assert library.shelf(ANN).index_status().embedded == 2140
    with library.database.read() as connection:  # nothing of what the server has is sent again
        assert connection.execute("SELECT count(*) FROM vector_outbox").fetchone()[0] == 40
    server.start()
    _drain_despite_failures(library, world)
    assert library.vectors.count(1, "ann") == 2140
    assert world.lost(library, "a", 2100, 100) == world.lost(library, "b", 40, 4) == []


def test_what_is_no_chroma_is_told(server: Server) -> None:
    index = VectorIndex(ChromaServer(server.url + "/nowhere"), library="x")
    with pytest.raises(VectorIndexError, match="answered 404 to Chroma's heartbeat"):
        index.count(1, "ann")
