"""A real Chroma server on loopback, started once."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import httpx2
import pytest

from storage.errors import VectorIndexError
from storage.index.chroma import ChromaServer
from storage.index.vectors import VectorIndex
from storage.library import Library
from storage.models import Identity, SearchFilter

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
