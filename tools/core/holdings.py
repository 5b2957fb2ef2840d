"""Holdings: which sources and directories the settings name."""

from __future__ import annotations

from dataclasses import dataclass

from storage.directory.models import RESEARCHERS, Directory
from storage.retrieval.sources import Source

__all__ = ["Holdings"]


@dataclass(frozen=True, slots=True)
class Holdings:
    """What the settings name of what is stored.

    Attributes:
        sources: Named parts that a question can be put to, in the order of the settings.
        directories: Directories of people or things; that of researchers is always the first.
    """

    sources: tuple[Source, ...] = ()
    directories: tuple[Directory, ...] = (RESEARCHERS,)
