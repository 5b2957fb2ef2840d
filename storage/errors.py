"""Exceptions of the storage package.

StorageError
├── ContextNotFoundError         no context has this id
├── DocumentNotFoundError        no document has this source
├── EntityNotFoundError          no entity matches the name
├── RelationshipNotFoundError    two entities do not have this relationship
├── PlanNotFoundError            no plan has this id, or the session has none
├── PlanConflictError            the plan's current state does not allow the change
├── AmbiguousNameError           several entities share the name
├── InvalidSourceError           a value that cannot be stored or searched for
├── UnreadableDocumentError      a file that cannot be converted to text
├── CeilingReachedError          a limit on delegations is reached
├── BackupError                  not a valid backup, or a target that cannot take one
├── SchemaVersionError           the data was written by another version of Toolcrib
└── StorageUnavailableError      the disk or the database fails: full, read-only, locked, damaged
    └── VectorIndexError         the vector index fails; it can be rebuilt from the record
"""

from __future__ import annotations

from collections.abc import Sequence


class StorageError(Exception):
    """A storage failure with a message that the user can act on.

    Attributes:
        message: What is wrong, with the value.
        suggestions: What to do next, one sentence each.
        candidates: Values that would be valid.
    """

    def __init__(
        self, message: str, *, suggestions: Sequence[str] = (), candidates: Sequence[str] = ()
    ) -> None:
        super().__init__(message)
        self.message = message
        self.suggestions = tuple(suggestions)
        self.candidates = tuple(candidates)


class ContextNotFoundError(StorageError):
    """No context is stored under this id."""


class DocumentNotFoundError(StorageError):
    """No document is stored under this source."""


class EntityNotFoundError(StorageError):
    """No entity matches the name."""


class RelationshipNotFoundError(StorageError):
    """Two entities do not have this relationship."""


class PlanNotFoundError(StorageError):
    """No plan has this id, or the session has no open one."""


class PlanConflictError(StorageError):
    """The current state of a plan does not allow the change."""


class AmbiguousNameError(StorageError):
    """Several entities share the name."""


class InvalidSourceError(StorageError):
    """A value cannot be stored or searched for."""


class UnreadableDocumentError(StorageError):
    """A file cannot be converted to text: empty, binary, encrypted, damaged or too large."""


class CeilingReachedError(StorageError):
    """A limit on a chain of delegations is reached."""


class BackupError(StorageError):
    """A file is not a valid backup, or a target cannot take a backup, an export or data."""


class SchemaVersionError(StorageError):
    """The data was written by a version of Toolcrib whose schema this one cannot use."""


class StorageUnavailableError(StorageError):
    """The disk or the database fails: full, read-only, locked or damaged."""


class VectorIndexError(StorageUnavailableError):
    """The vector index fails; searches continue without it, and the record can rebuild it."""
