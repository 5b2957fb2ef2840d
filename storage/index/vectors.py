"""The vector index: ChromaDB, one collection per model and user, rebuildable from the record.

Processes that share an embedded Chroma's directory avoid damage by two rules, which the caller
enforces. Only the holder of the indexer's lock writes. Before writing, a process reopens the index
if another has written since (`generation`), because Chroma itself does not notice.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from storage.errors import VectorIndexError
from storage.keeping.atomic import free_name
from storage.outbound import ClientFactory, plain_client

if TYPE_CHECKING:
    from storage.index.embedders.base import Vectors


log = logging.getLogger("toolcrib.indexer")

# Seconds a server may take per request; Chroma's own client would wait forever.
SERVER_SECONDS = 15.0
GREETING_SECONDS = 3.0  # seconds a server may take to answer the heartbeat
# Seconds before a silent server is asked again; otherwise every search would wait for it.
SILENCE_SECONDS = 10.0


class ChromaDirectory:
    """Chroma embedded in this process, with its files in a directory, created on first use."""

    # Processes share its files, each with its own Chroma. A process sees the writes of others only
    # after reopening, and a failure means damage.
    shared_files = True

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.name = str(directory)
        self.aside: Path | None = None

    def check(self) -> None:
        """Checks that the files are writable: Chroma fails on read-only files."""
        home = Path(os.path.realpath(self.directory))
        there = next(path for path in (home, *home.parents) if path.exists())
        for path in filter(Path.exists, (there, home / "chroma.sqlite3")):
            if not os.access(path, os.W_OK):
                raise VectorIndexError(
                    f"{path} is not writable, and Chroma can only read files it can write.",
                    suggestions=(
                        "Searches read the vectors in the record instead.",
                        "Give yourself write permission, or choose another data directory.",
                    ),
                )

    def open(self) -> Any:
        """Opens a client with its own Chroma."""
        self.check()
        import chromadb
        from chromadb.api.shared_system_client import SharedSystemClient
        from chromadb.config import Settings

        Path(os.path.realpath(self.directory)).mkdir(parents=True, exist_ok=True, mode=0o700)
        path = str(self.directory)
        try:
            return chromadb.PersistentClient(
                path=path, settings=Settings(anonymized_telemetry=False)
            )
        except BaseException:
            # Otherwise Chroma would answer the next attempt with the system that failed to start.
            SharedSystemClient._identifier_to_system.pop(path, None)  # noqa: SLF001  # no public API forgets one path
            raise

    def close(self, client: Any) -> None:
        """Closes a client; the last one closes the files too."""
        client.close()

    def remove(self) -> bool:
        """Removes the files; anything that cannot be removed is moved aside, or raises OSError."""
        target = Path(os.path.realpath(self.directory))  # it may lie on another disk
        shutil.rmtree(target, ignore_errors=True)
        try:
            target.mkdir(parents=True, mode=0o700)
        except OSError:
            self.aside = free_name(self.directory, "unusable")
            self.directory.rename(self.aside)
            log.warning("Moved %s, which could not be used, to %s", self.directory, self.aside)
        return True


class ChromaServer:
    """A Chroma server, possibly shared with others."""

    shared_files = False  # its failures may be temporary

    def __init__(self, url: str, client: ClientFactory = plain_client) -> None:
        self.name = url
        self.aside: Path | None = None
        self._client = client
        self._url = urlsplit(url.rstrip("/"))
        self._silent: tuple[float, VectorIndexError] | None = None

    def check(self) -> None:
        """Checks the heartbeat first, because Chroma's client connects without a time limit."""
        import httpx2

        if self._silent is not None and time.monotonic() - self._silent[0] < SILENCE_SECONDS:
            raise self._silent[1]
        try:
            with self._client(self.name) as client:
                heartbeat = f"{self.name.rstrip('/')}/api/v2/heartbeat"
                answer = client.get(heartbeat, timeout=GREETING_SECONDS)
        except httpx2.HTTPError as error:
            refusal = VectorIndexError(
                f"The Chroma server at {self.name} cannot be reached: {error}.",
                suggestions=("Start it, or correct chroma.url; searches continue without it.",),
            )
            if isinstance(error, httpx2.TimeoutException):
                self._silent = time.monotonic(), refusal
            raise refusal from error
        if answer.status_code != 200:  # noqa: PLR2004  # the protocol's success
            raise VectorIndexError(
                f"{self.name} answered {answer.status_code} to Chroma's heartbeat.",
                suggestions=("Correct chroma.url; searches continue without it.",),
            )

    def open(self) -> Any:
        """Opens a client of the server."""
        import chromadb
        from chromadb.config import Settings

        self.check()
        secure = self._url.scheme == "https"
        client = chromadb.HttpClient(
            host=self._url.hostname or "",
            port=self._url.port or (443 if secure else 80),
            ssl=secure,
            settings=Settings(anonymized_telemetry=False),
        )
        _session(client).timeout = SERVER_SECONDS
        return client

    def close(self, client: Any) -> None:
        """Closes a client and its connections, which Chroma would leave open."""
        sessions = [_session(client), _session(client._admin_client)]  # noqa: SLF001  # no public API
        client.close()
        for session in sessions:
            session.close()

    def remove(self) -> bool:
        """Removes nothing, because other libraries may be stored there."""
        return False


def _session(client: Any) -> Any:
    """Returns a client's connections, which no public API closes or times out."""
    return client._server._session  # noqa: SLF001  # no public API


ChromaHome = ChromaDirectory | ChromaServer


def chroma_home(data_dir: Path, url: str, client: ClientFactory = plain_client) -> ChromaHome:
    """Returns the server at a URL; without one, the Chroma of a data directory."""
    return ChromaServer(url, client) if url else ChromaDirectory(data_dir / "chroma")


Place = tuple[int, str]  # a model and a user, whose vectors form one collection
MAX_BATCH = 1000  # rows per call; Chroma refuses more than 5,461

# Candidates kept by a search of the graph.
#
# Of the true 100 nearest among 20,000 it then found 99.9 %, with Chroma's default of 100 99.5 %,
# for half a millisecond more.
EF_SEARCH = 300

# Neighbours to request when checking that the graph is not lost, and the share that must be found.
#
# When the graph is lost, Chroma's log (`sync_threshold`, 1,000) still answers: for at most half of
# the vectors. A sound graph of 2,000 had no path to a single vector in one of 50 cases, and to 29 %
# of equal vectors.
PROBE = 2500
WHOLE = 0.6

MOST_OPEN = 64  # collections in use at once, if the limit of open files allows it

# How stale a search may be.
#
# Reopening takes 40 ms, which every search would pay while another process writes continuously.
REOPEN_SECONDS = 1.0


class VectorIndex:
    """Finds nearest neighbours among one user's vectors of one model."""

    def __init__(self, home: ChromaHome, *, library: str) -> None:
        self.home = home
        self._library = library
        self._turn = threading.RLock()
        self._client: Any = None
        self._collections: dict[str, Any] = {}  # fetching one costs half a query
        self._generation: int | None = None
        self._opened = 0.0

    def follow(self, generation: int, *, at_once: bool = True) -> None:
        """Reopens the index if another process has written since it was opened.

        Unless the next operation must see that `at_once`, its state may be `REOPEN_SECONDS` old.
        """
        if not self.home.shared_files:
            return
        with self._turn:
            if self._client is not None and generation != self._generation:
                if not at_once and time.monotonic() - self._opened < REOPEN_SECONDS:
                    return
                self.close()
            self._generation = generation

    def wrote(self, generation: int) -> None:
        """Records that the open index is of this generation."""
        with self._turn:
            self._generation = generation

    def upsert(self, model: int, user_id: str, seqs: Sequence[int], vectors: Vectors) -> None:
        """Adds or replaces the vectors of these chunks."""
        name = self._name(model, user_id)
        with self._open(name) as client:
            collection = self._collections[name] = client.get_or_create_collection(
                name=name,
                embedding_function=None,
                configuration={"hnsw": {"space": "cosine", "ef_search": EF_SEARCH}},
            )
            for start in range(0, len(seqs), MAX_BATCH):
                batch = slice(start, start + MAX_BATCH)
                collection.upsert(ids=_ids(seqs[batch]), embeddings=vectors[batch])

    def delete(self, model: int, user_id: str, seqs: Sequence[int]) -> None:
        """Removes these chunks; missing ones are ignored."""
        for start in range(0, len(seqs), MAX_BATCH):
            batch = _ids(seqs[start : start + MAX_BATCH])
            self._ask(model, user_id, methodcaller("delete", ids=batch))

    def nearest(self, model: int, user_id: str, vector: Vectors, count: int) -> list[int]:
        """Returns the chunks nearest to a vector by cosine, nearest first."""
        query = methodcaller("query", query_embeddings=[vector], n_results=count, include=[])
        found = self._ask(model, user_id, query)
        return [] if found is None else [int(identifier) for identifier in found["ids"][0]]

    def count(self, model: int, user_id: str) -> int:
        """Returns the number of the user's vectors in the index."""
        return self._ask(model, user_id, methodcaller("count")) or 0

    def is_whole(self, model: int, user_id: str, vector: Vectors) -> bool:
        """Returns whether searches find what is counted, so the graph is not lost.

        A sound graph may have no path to some vectors, so `WHOLE` of them suffice.
        """
        wanted = min(self.count(model, user_id), PROBE)
        return not wanted or len(self.nearest(model, user_id, vector, wanted)) >= WHOLE * wanted

    def drop(self) -> None:
        """Removes the index; the record can fill it again."""
        with self._turn, self._translate_errors():
            self.close()
            if not self.home.remove():
                self._delete_collections(lambda name: name.startswith(f"{self._library}-"))

    def drop_users(self, places: Collection[Place]) -> None:
        """Removes the vectors of some models and users."""
        names = {self._name(*place) for place in places}
        self._delete_collections(names.__contains__)

    def close(self) -> None:
        """Releases the files or the server; the next use opens them again."""
        with self._turn:
            client, self._client = self._client, None
            self._collections.clear()
            if client is not None:
                self.home.close(client)

    def _name(self, model: int, user_id: str) -> str:
        return f"{self._library}-{model}-{hashlib.sha256(user_id.encode()).hexdigest()[:32]}"

    def _delete_collections(self, is_going: Callable[[str], bool]) -> None:
        with self._open() as client:
            self._collections.clear()
            for collection in client.list_collections():
                if is_going(collection.name):
                    client.delete_collection(collection.name)

    def _ask(self, model: int, user_id: str, question: Callable[[Any], Any]) -> Any:
        """Asks a collection; returns None if nothing was ever added.

        Another process may have rebuilt it since it was fetched, so a missing one is fetched again.
        """
        from chromadb.errors import NotFoundError

        name = self._name(model, user_id)
        with self._open(name) as client:
            if name in self._collections:
                try:
                    return question(self._collections[name])
                except NotFoundError:
                    del self._collections[name]
            try:
                self._collections[name] = client.get_collection(name, embedding_function=None)
            except NotFoundError:
                return None
            return question(self._collections[name])

    @contextmanager
    def _open(self, name: str = "") -> Iterator[Any]:
        import resource  # not in CPython for WebAssembly, which never gets here

        with self._turn, self._translate_errors():
            most = min(MOST_OPEN, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 32)
            if len(self._collections) >= most and name not in self._collections:
                self.close()  # otherwise Chroma would keep four files of each open
            if self._client is None:
                self._client = self.home.open()
                self._opened = time.monotonic()
            yield self._client

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:  # a panic of Chroma's Rust core is not an Exception
            with suppress(
                Exception
            ):  # a broken client may fail to close, but stays shared until it is closed
                self.close()
            if isinstance(error, VectorIndexError):
                raise
            raise VectorIndexError(
                f"The vector index in {self.home.name} failed: {error}.",
                suggestions=("It is rebuilt from the record; searches continue without it.",),
            ) from error


def _ids(seqs: Sequence[int]) -> list[str]:
    return [str(seq) for seq in seqs]
