"""Directories: people or things of one identity, imported, listed and found."""

from __future__ import annotations

from collections.abc import Iterable

from storage.directory.models import Directory, Record
from storage.directory.results import Added, Found, FoundItems, GroupSize, Members

__all__ = ["Directories"]


class Directories:
    """One identity's directories; its calls block, so run them in a worker thread.

    A directory is a mapping (`storage.directory.models.Directory`); what is stored under its name
    is found with it. Nothing has to be made first, and an empty directory finds nothing.
    """

    def add(self, directory: Directory, records: Iterable[Record], *, prune: bool = False) -> Added:
        """Stores records with their items; those that are stored just so are left as they are.

        A record that is stored otherwise is replaced with its items in one transaction, so that no
        search sees half of it. Records are written some hundred at once: where the disk refuses in
        the middle, what was written stays, and the same import goes on from there.

        Args:
            directory: What they are records of.
            records: As `storage.directory.reading.read_records` reads them.
            prune: Whether records that are stored and not among these are removed.

        Raises:
            StorageUnavailableError: If the record cannot be written.
        """
        raise NotImplementedError

    def remove(self, directory: Directory) -> int:
        """Removes all records of a directory with their items, and says how many records went.

        Raises:
            StorageUnavailableError: If the record cannot be written.
        """
        raise NotImplementedError

    def count(self, directory: Directory) -> int:
        """How many records are stored."""
        raise NotImplementedError

    def search_names(self, directory: Directory, name: str, top_k: int) -> Found:
        """The records that a name means, best first; without such, those that say it best.

        Case, accents, titles, the order of first and last name, initials and a typo do not matter,
        nor a question around the name, such as "who is".
        """
        raise NotImplementedError

    def search_topics(self, directory: Directory, topic: str, top_k: int) -> Found:
        """The records whose texts or items are about a topic, best first."""
        raise NotImplementedError

    def search(self, directory: Directory, query: str, top_k: int) -> Found:
        """The records for a query that may be a name or a topic; the answer says which it took."""
        raise NotImplementedError

    def search_items(  # noqa: PLR0913  # what narrows a search
        self,
        directory: Directory,
        items: str,
        topic: str,
        top_k: int,
        *,
        since: int | None = None,
        until: int | None = None,
    ) -> FoundItems:
        """The items that are about a topic, best first, each with the records it belongs to.

        Args:
            directory: Where.
            items: The field of the list, such as "publications".
            topic: What they are about.
            top_k: How many at most.
            since: The first year that fits; None leaves this end open.
            until: The last year that fits; None leaves this end open. With either, items without a
                year do not fit.

        Raises:
            InvalidSourceError: If the directory has no such list.
        """
        raise NotImplementedError

    def groups(self, directory: Directory, field: str) -> list[GroupSize]:
        """The groups of a field, by name, with how many are in each.

        Raises:
            InvalidSourceError: If the directory has no such group field.
        """
        raise NotImplementedError

    def members(
        self, directory: Directory, field: str, value: str, limit: int, offset: int = 0
    ) -> Members:
        """The records of a group.

        The first way that finds a group decides: its name in any case and accents, then all the
        words of one in the other, then typos.

        Raises:
            InvalidSourceError: If the directory has no such group field.
        """
        raise NotImplementedError
