"""What can go wrong on the shelves.

StorageError
├── ContextNotFoundError         nothing is stored under that id
├── DocumentNotFoundError        nothing is stored under that source
├── EntityNotFoundError          no entity has a name like that
├── RelationshipNotFoundError    two entities are not related like that
├── PlanNotFoundError            no plan has that id, or the session has none
├── PlanConflictError            a change that what is stored of a plan does not allow
├── AmbiguousNameError           a name that several entities have
├── InvalidSourceError           a value that storage cannot keep or search by
├── UnreadableDocumentError      a file that cannot be turned into text
├── CeilingReachedError          delegations came to all that they may
├── BackupError                  a file that is no backup, or a place that cannot take one
├── SchemaTooNewError            the data was written by a newer Toolcrib
└── StorageUnavailableError      the disk or the database refuses: full, read-only, locked, damaged
    └── VectorIndexError         the vector index refuses; the record can rebuild it
"""

from __future__ import annotations

from collections.abc import Sequence


class StorageError(Exception):
    """A failure of storage whose message a person can act on.

    Attributes:
        message: What was wrong, with the value.
        suggestions: What to do next, one sentence each.
        candidates: Values that would have worked.
    """

    def __init__(
        self,
        message: str,
        *,
        suggestions: Sequence[str] = (),
        candidates: Sequence[str] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.suggestions = tuple(suggestions)
        self.candidates = tuple(candidates)


class ContextNotFoundError(StorageError):
    """Nothing is stored under that id."""


class DocumentNotFoundError(StorageError):
    """Nothing is stored under that source."""


class EntityNotFoundError(StorageError):
    """No entity has a name like that."""


class RelationshipNotFoundError(StorageError):
    """Two entities are not related like that."""


class PlanNotFoundError(StorageError):
    """No plan has that id, or the session has none that is open."""


class PlanConflictError(StorageError):
    """A change that what is stored of a plan does not allow."""


class AmbiguousNameError(StorageError):
    """A name that several entities have."""


class InvalidSourceError(StorageError):
    """A value that storage cannot keep or search by."""


class UnreadableDocumentError(StorageError):
    """A file that cannot be turned into text: empty, binary, encrypted, damaged or too large."""


class CeilingReachedError(StorageError):
    """The delegations that led to one another have come to all that they may."""


class BackupError(StorageError):
    """A file that is no sound backup, or a place that cannot take a backup, an export or data."""


class SchemaTooNewError(StorageError):
    """The data directory was written by a newer version of Toolcrib."""


class StorageUnavailableError(StorageError):
    """The disk or the database refuses: full, read-only, locked or damaged."""


class VectorIndexError(StorageUnavailableError):
    """The vector index refuses; searches continue without it and the record can rebuild it."""
