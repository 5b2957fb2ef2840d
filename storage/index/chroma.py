"""Where Chroma is: in a directory of ours, or behind a server.

A home makes clients; what is done with them is the vector index's business.
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

SERVER_SECONDS = 15.0
"""How long a server may take over one request; Chroma's own client would wait for ever."""

GREETING_SECONDS = 3.0
"""How long one may take to say that it is there."""

SILENCE_SECONDS = 10.0
"""How long one that said nothing is not asked again: every search would wait for it."""


class ChromaHome(Protocol):
    """A place that Chroma clients are made for.

    Attributes:
        name: The place, for errors.
        shared_files: Whether processes share its files, each with a Chroma of its own: what one
            writes the others see after reopening alone, and what fails is damaged. A server sees
            to that itself, and what fails may be back in a moment.
        aside: Where `remove` moved what it could not remove, if there was any.
    """

    name: str
    shared_files: bool
    aside: Path | None

    def check(self) -> None:
        """Sees, without loading Chroma, that it can be opened.

        Raises:
            VectorIndexError: If not.
        """

    def open(self) -> Any:
        """A client.

        Raises:
            VectorIndexError: If the place cannot be used.
        """

    def close(self, client: Any) -> None:
        """Closes a client, and all that it holds."""

    def remove(self) -> bool:
        """Removes everything at once where nobody else's is kept; False where that may be."""


class ChromaDirectory:
    """Chroma embedded in this process, its files in a directory.

    Args:
        directory: The directory; made when it is first used.
    """

    shared_files = True

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.name = str(directory)
        self.aside: Path | None = None

    def check(self) -> None:
        """Sees that the files can be written: Chroma fails where it may only read."""
        home = Path(os.path.realpath(self.directory))
        there = next(path for path in (home, *home.parents) if path.exists())
        for path in filter(Path.exists, (there, home / "chroma.sqlite3")):
            if not os.access(path, os.W_OK):
                raise VectorIndexError(
                    f"{path} cannot be written, and Chroma reads only what it can write.",
                    suggestions=(
                        "Searches read the vectors in the record instead.",
                        "Give yourself write permission, or choose another data directory.",
                    ),
                )

    def open(self) -> Any:
        """A client of its own Chroma."""
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
            # Chroma would answer the next attempt with the system that did not start.
            SharedSystemClient._identifier_to_system.pop(path, None)  # noqa: SLF001  # nothing public forgets one path
            raise

    def close(self, client: Any) -> None:
        """Closes a client, and its files with the last one."""
        client.close()

    def remove(self) -> bool:
        """Removes the files; what is no directory, or may not be removed, is moved aside.

        Raises:
            OSError: If that is not allowed either.
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
    """A Chroma server, which others may use too.

    Args:
        url: Its address, http://host:port or https://host:port.
        client: Makes what asks whether it is there; Chroma's own client brings its connections.
    """

    shared_files = False

    def __init__(self, url: str, client: ClientFactory = plain_client) -> None:
        self.name = url
        self.aside: Path | None = None
        self._client = client
        self._url = urlsplit(url.rstrip("/"))
        self._silent: tuple[float, VectorIndexError] | None = None

    def check(self) -> None:
        """Sees that a server is there: a client that is made for it has no time limit."""
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
        """A client of the server."""
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
        """Closes a client, and its connections, which it would leave open itself."""
        sessions = [_session(client), _session(client._admin_client)]  # noqa: SLF001  # nothing public holds it
        client.close()
        for session in sessions:
            session.close()

    def remove(self) -> bool:
        """Removes nothing: other libraries may be kept there."""
        return False


def _session(client: Any) -> Any:
    """A client's connections: nothing public closes them, or sets them a time limit."""
    return client._server._session  # noqa: SLF001  # nothing public does it


def chroma_home(data_dir: Path, url: str, client: ClientFactory = plain_client) -> ChromaHome:
    """The server at an address; without one, the Chroma of a data directory."""
    return ChromaServer(url, client) if url else ChromaDirectory(data_dir / "chroma")
