"""Defines what a reader returns, and checks shared by the readers of archives."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any
from urllib.parse import unquote
from zipfile import ZipFile

from storage.errors import UnreadableDocumentError

# Maximum bytes that an archive's files may have in total; zipfile stops at what each declares.
MAX_UNPACKED_BYTES = 300_000_000
LONGEST_TEXT = 20_000_000  # characters of a workbook or a notebook; the rest is left out
NO_MEMORY = (0, 2)  # libxml2's error codes without details, and XML_ERR_NO_MEMORY
DISPUTED = "Its encoding is not certain: it was read as Windows-1252."
TOO_LONG = f"Only its first {LONGEST_TEXT:,} characters are stored."


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file inside another one."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Content:
    """The text of a file, with what the file says about itself."""

    text: str
    title: str = ""  # empty if it declares none
    media_type: str = ""  # empty means that of its format
    event_time: float | None = None  # Unix seconds of its own date
    entities: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    attachments: tuple[Attachment, ...] = ()
    notes: tuple[str, ...] = ()  # what the user must know about the text


def encryption_error() -> UnreadableDocumentError:
    """Returns the error for a document with a password."""
    return UnreadableDocumentError(
        "It is encrypted with a password.", suggestions=("Save a copy without a password.",)
    )


def open_archive(data: bytes) -> ZipFile:
    """Opens a ZIP archive that unpacks to a bounded size."""
    archive = ZipFile(BytesIO(data))
    size = sum(file.file_size for file in archive.infolist())
    if size > MAX_UNPACKED_BYTES:
        raise UnreadableDocumentError(
            f"It unpacks to {size:,} bytes; at most {MAX_UNPACKED_BYTES:,} are read.",
            suggestions=("Save the document without its pictures, or as plain text.",),
        )
    return archive


def parse_xml(data: bytes) -> Any:  # noqa: ANN401  # lxml has no types
    """Parses XML, without entities and outside files."""
    from lxml import etree

    try:
        parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        if error.code in NO_MEMORY:
            raise MemoryError from error
        raise


def parts_of(archive: ZipFile, part: str = "") -> dict[str, tuple[str, str]]:
    """Returns the kind and the path of each part that one of Office Open XML points to, by id."""
    folder, _, name = part.rpartition("/")
    relations = posixpath.join(folder, "_rels", f"{name}.rels")
    found: dict[str, tuple[str, str]] = {}
    names = set(archive.namelist())
    if relations in names:
        for each in parse_xml(archive.read(relations)):
            path = posixpath.normpath(posixpath.join("/", folder, unquote(each.get("Target", ""))))
            if path[1:] in names:
                found[each.get("Id")] = each.get("Type", "").rpartition("/")[2], path[1:]
    return found


def main_part(archive: ZipFile) -> str:
    """Returns the path of the main part of an Office Open XML document; empty if it has none."""
    kinds = parts_of(archive).values()
    return next((path for kind, path in kinds if kind == "officeDocument"), "")


def core_title(archive: ZipFile) -> str:
    """Returns the title in the properties of an Office Open XML document."""
    for kind, path in parts_of(archive).values():
        if kind == "core-properties":
            return parse_xml(archive.read(path)).findtext("{*}title") or ""
    return ""


def table_row(cells: list[str]) -> str:
    """Formats a row of a table; empty if all of its cells are."""
    texts = [" ".join(cell.split()) for cell in cells]
    while texts and not texts[-1]:
        texts.pop()
    return f"| {' | '.join(texts)} |" if texts else ""
