"""Opens Chroma, from a local directory or behind a server.

A home makes clients; the vector index uses them.
"""

from __future__ import annotations

import logging
import os
import shutil
import time
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from storage.errors import VectorIndexError
from storage.keeping.atomic import free_name
from storage.outbound import ClientFactory, plain_client

log = logging.getLogger("toolcrib.indexer")

# Seconds a server may take per request; Chroma's own client would wait forever.
SERVER_SECONDS = 15.0
GREETING_SECONDS = 3.0  # seconds a server may take to answer the heartbeat
# Seconds before a silent server is asked again; otherwise every search would wait for it.
SILENCE_SECONDS = 10.0


class ChromaHome(Protocol):
    """A location of Chroma that clients are made for."""

    name: str
    # Whether processes share its files, each with its own Chroma. A process then sees the writes of
    # others only after reopening, and a failure means damage. A server avoids both, and its
    # failures may be temporary.
    shared_files: bool
    aside: Path | None  # where `remove` moved files that it could not delete, if there were any

    def check(self) -> None:
        """Checks, without loading Chroma, that it can be opened.

        Raises:
            VectorIndexError: If it cannot.
        """

    def open(self) -> Any:
        """Opens a client.

        Raises:
            VectorIndexError: If the location cannot be used.
        """

    def close(self, client: Any) -> None:
        """Closes a client and everything it holds."""

    def remove(self) -> bool:
        """Removes everything at once; returns False if the data of others may be there."""


class ChromaDirectory:
    """Chroma embedded in this process, with its files in a directory.

    Args:
        directory: The directory; created on first use.
    """

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
        from chromadb.api.shared_system_client import (
            SharedSystemClient,
        )
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
        """Removes the files; anything that cannot be removed is moved aside.

        Raises:
            OSError: If moving fails too.
        """
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

    shared_files = False

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


def chroma_home(data_dir: Path, url: str, client: ClientFactory = plain_client) -> ChromaHome:
    """Returns the server at a URL; without one, the Chroma of a data directory."""
    return ChromaServer(url, client) if url else ChromaDirectory(data_dir / "chroma")
