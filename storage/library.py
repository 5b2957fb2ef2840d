"""The library: every part of storage put together, and the shelf that one identity sees of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from storage.chunk import TextChunk, chunk
from storage.contexts import ContextRepository, PreparedChunk
from storage.database import Database
from storage.embed import Embedder
from storage.errors import InvalidSourceError, ModelMismatchError
from storage.indexer import Indexer
from storage.models import (
    Chunk,
    Document,
    Identity,
    IndexStatus,
    NewDocument,
    SearchFilter,
    SearchResult,
)
from storage.names import fold, resolve
from storage.parse import MAX_BYTES
from storage.search import SearchEngine
from storage.tokenize import tokenize
from storage.vectors import VectorIndex

__all__ = ["Library", "Shelf", "StoredDocument"]

OnProgress = Callable[[int, int], None]
"""Told (done, total) chunks; may raise to give up before anything is written."""

_EMBEDDER = "embedder"


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """What adding a document did.

    Attributes:
        document: As it is stored now.
        replaced: Whether it took an earlier version's place.
        unchanged: Whether the same version was stored already, so that nothing was written.
    """

    document: Document
    replaced: bool
    unchanged: bool


class Library:
    """Everything that one data directory keeps.

    Args:
        directory: The data directory; made, readable by its owner only, if it does not exist.
        embedder: Makes the vectors; a directory keeps to the one that it began with.
        alpha: Weight of meaning against words in a search, 0 to 1.
        max_document_bytes: Largest document that is taken.

    Raises:
        ModelMismatchError: If the stored vectors were made by another embedder.
        SchemaTooNewError: If a newer version of Toolcrib wrote the directory.
        StorageUnavailableError: If the directory cannot be used.
    """

    def __init__(
        self,
        directory: Path,
        embedder: Embedder,
        *,
        alpha: float = 0.5,
        max_document_bytes: int = MAX_BYTES,
    ) -> None:
        self.directory = directory
        self.database = Database(directory / "toolcrib.db")
        try:
            _check_embedder(self.database, embedder)
        except BaseException:
            self.database.close()
            raise
        self.vectors = VectorIndex(directory / "chroma", model_id=embedder.model_id)
        self.indexer = Indexer(self.database, embedder, self.vectors, directory / "indexer.lock")
        self.engine = SearchEngine(self.database, embedder, self.vectors, self.indexer, alpha=alpha)
        self._contexts = ContextRepository(self.database)
        self._max_document_bytes = max_document_bytes

    def shelf(self, identity: Identity) -> Shelf:
        """What one identity sees and changes."""
        return Shelf(
            identity,
            self._contexts,
            self.engine,
            self.indexer,
            max_document_bytes=self._max_document_bytes,
        )

    def close(self) -> None:
        """Ends the background work and lets go of the files."""
        self.indexer.stop()
        self.vectors.close()
        self.database.close()


class Shelf:
    """One identity's part of the library; its calls block, so run them in a worker thread.

    Args:
        identity: Whose contexts every call is bound to.
        contexts: The repository.
        engine: The search engine.
        indexer: The background worker.
        max_document_bytes: Largest document that is taken.
    """

    def __init__(
        self,
        identity: Identity,
        contexts: ContextRepository,
        engine: SearchEngine,
        indexer: Indexer,
        *,
        max_document_bytes: int,
    ) -> None:
        self.identity = identity
        self.max_document_bytes = max_document_bytes
        self._contexts = contexts
        self._engine = engine
        self._indexer = indexer

    def add_document(
        self, document: NewDocument, on_progress: OnProgress | None = None
    ) -> StoredDocument:
        """Stores a document, in place of its earlier version, and has it embedded.

        It can be found by its words as soon as this returns; by its meaning once it is embedded.

        Raises:
            InvalidSourceError: If the text is blank.
            StorageUnavailableError: If the record cannot be written; nothing was changed.
        """
        same = self._same_version(document)
        if same is not None:
            return StoredDocument(same, replaced=False, unchanged=True)
        pieces = chunk(document.text, markdown=document.markdown)
        if not pieces:
            raise InvalidSourceError(
                f"{document.title!r} has no text.", suggestions=("Give a text with words in it.",)
            )
        entities = _names(document.entities)
        stored, replaced = self._contexts.replace_document(
            self.identity,
            replace(document, entities=entities),
            list(_prepare(document.title, pieces, on_progress)),
            [(fold(name), name) for name in entities],
        )
        self._indexer.notify()
        return StoredDocument(stored, replaced, unchanged=False)

    def get_document(self, raw_type: str, raw_id: str) -> tuple[Document, list[Chunk]]:
        """A document and its chunks in order.

        Raises:
            DocumentNotFoundError: If there is no such document.
        """
        return self._contexts.get_document(self.identity, raw_type, raw_id)

    def delete_document(self, raw_type: str, raw_id: str) -> int:
        """Deletes a document from every store and says how many chunks went.

        Raises:
            DocumentNotFoundError: If there is no such document.
        """
        removed = self._contexts.delete_document(self.identity, raw_type, raw_id)
        self._indexer.notify()
        return removed

    def documents(self, limit: int, offset: int = 0) -> list[Document]:
        """Documents, newest first."""
        return self._contexts.documents(self.identity, limit, offset)

    def search(
        self,
        query: str | None,
        wanted: SearchFilter,
        top_k: int,
        *,
        alpha: float | None = None,
    ) -> SearchResult:
        """The best contexts for a query, or the newest without one.

        Args:
            query: What to look for.
            wanted: What narrows the search; entities are names in any spelling.
            top_k: How many hits at most.
            alpha: Weight of meaning against words, 0 to 1; by default the engine's.
        """
        if wanted.entities:
            wanted = replace(wanted, entities=self._resolved(wanted.entities))
        if query is None:
            return self._engine.newest(self.identity, wanted, top_k)
        return self._engine.search(self.identity, query, wanted, top_k, alpha=alpha)

    def index_status(self) -> IndexStatus:
        """How much of what is stored can be found by meaning."""
        return self._indexer.status(self.identity)

    def _same_version(self, document: NewDocument) -> Document | None:
        earlier = self._contexts.find_document(self.identity, document.raw_type, document.raw_id)
        if earlier is None:
            return None
        same = (
            earlier.sha256 == document.sha256
            and earlier.title == document.title
            and earlier.media_type == document.media_type
            and earlier.file_path == document.file_path
            and set(earlier.entities) == set(_names(document.entities))
            and dict(earlier.metadata) == dict(document.metadata)
            and document.event_time in (None, earlier.event_time)
        )
        return earlier if same else None

    def _resolved(self, names: Sequence[str]) -> tuple[str, ...]:
        """The folded names that are stored for names in any spelling; an unknown one finds none."""
        known = self._contexts.known_names(self.identity)
        folded: dict[str, None] = {}
        for name in names:
            for match in resolve(name, known) or ():
                folded[fold(match.name)] = None
            folded[fold(name)] = None
        return tuple(folded)


def _names(given: Iterable[str]) -> tuple[str, ...]:
    """The names without blanks around them, none empty, each once."""
    return tuple(dict.fromkeys(name.strip() for name in given if name.strip()))


def _prepare(
    title: str, pieces: Sequence[TextChunk], on_progress: OnProgress | None
) -> Iterator[PreparedChunk]:
    for done, piece in enumerate(pieces):
        if on_progress is not None:
            on_progress(done, len(pieces))
        heading = piece.heading.removeprefix(title).removeprefix(" > ")
        yield PreparedChunk(
            heading=heading,
            content=piece.content,
            start=piece.start,
            title_terms=tuple(tokenize(f"{title}\n{heading}")),
            body_terms=tuple(tokenize(piece.content)),
        )


def _check_embedder(database: Database, embedder: Embedder) -> None:
    """Records the embedder on first use, and refuses another one later."""
    scheme = f"{embedder.model_id}/{embedder.dimensions}"
    recorded = database.get_meta(_EMBEDDER)
    if recorded is None:
        with database.write() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO meta (key, value) VALUES (?, ?)", (_EMBEDDER, scheme)
            )
        recorded = database.get_meta(_EMBEDDER)  # another process may have been first
    if recorded != scheme:
        raise ModelMismatchError(
            f"The vectors in {database.path.parent} were made by {recorded}, not by {scheme}.",
            suggestions=("Choose another data directory, or the embedder it began with.",),
        )
