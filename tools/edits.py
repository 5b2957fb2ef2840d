"""Edits of text files: replaces a passage or inserts lines."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Annotated

from pydantic import AliasChoices, ConfigDict, Field

from tools.core.context import RequestContext
from tools.core.errors import InvalidArgumentsError
from tools.core.result import ToolModel
from tools.core.spec import Alias, Effect, Subject, SubjectKind, ToolScope, tool
from tools.sandbox.files.replace import MAX_EDIT_BYTES, whole_content
from tools.sandbox.files.resolve import digest_of
from tools.sandbox.files.text_edit import (
    MOST_COUNTED,
    Change,
    Passages,
    applied,
    format_hunks,
    hunks,
    inserted,
    similar_lines,
)
from tools.sandbox.files.text_files import (
    FILE_NAMES,
    Digest,
    Encoding,
    FilePath,
    editable_text,
    encode_text,
    short_digest,
    unicode_name,
    visible,
)
from tools.sandbox.history.undo import unified

MAX_TEXT_CHARACTERS = 1_000_000  # limit on a passage
MAX_LISTED = 20  # limit on the changed places that a result names
MAX_DIFF_CHARACTERS = 4_000  # limit on the diff in a result

Changes = Callable[[], Iterable[Change]]
"""Returns the changes from the start each time: there may be too many to keep."""

MAX_EDITS = 200  # limit on the edits of one call

Passage = Annotated[str, Field(max_length=MAX_TEXT_CHARACTERS)]


class PassageEdit(ToolModel):
    """One edit of several.

    Attributes:
        old_text: A passage, exactly.
        new_text: What takes its place.
        replace_all: Every occurrence, not only one.
    """

    model_config = ConfigDict(extra="forbid")

    old_text: Annotated[
        Passage,
        Field(
            min_length=1,
            validation_alias=AliasChoices("old_text", "oldText", "old_string", "old_str"),
            description="A passage, exactly; once in what the earlier edits leave",
        ),
    ]
    new_text: Annotated[
        Passage,
        Field(
            validation_alias=AliasChoices("new_text", "newText", "new_string", "new_str"),
            description="What takes its place",
        ),
    ]
    replace_all: Annotated[
        bool,
        Field(
            validation_alias=AliasChoices("replace_all", "replaceAll"),
            description="Every occurrence, not only one",
        ),
    ] = False


class FileEdits(ToolModel):
    """The result of several edits of a file.

    Attributes:
        file_path: The file, relative to the root.
        edits: Number of edits.
        dry_run: Whether nothing was written.
        sha256: Digest of its new content.
        diff: The whole change, as a unified diff.
    """

    file_path: str
    edits: int
    dry_run: bool
    sha256: str
    diff: str

    def to_text(self) -> str:
        """Formats a summary, then the diff."""
        count = "1 edit" if self.edits == 1 else f"{self.edits} edits"
        done = "Would make" if self.dry_run else "Made"
        digest = short_digest(self.sha256)
        return f"{done} {count} in {visible(self.file_path)}, sha256 {digest}\n{self.diff}"


class FileEdited(ToolModel):
    """The result of an edit.

    Attributes:
        file_path: The file, relative to the root.
        size: Size of the file in bytes.
        sha256: Digest of its content.
        encoding: The codec of the file.
        changes: Number of changed places.
        lines: New line ranges of the first changed places.
        diff: The first changes, as a unified diff.
    """

    file_path: str
    size: int
    sha256: str
    encoding: str
    changes: int
    lines: list[tuple[int, int]]
    diff: str

    def to_text(self) -> str:
        """Formats a summary, then the diff."""
        places = "1 place" if self.changes == 1 else f"{self.changes} places"
        head = f"Changed {visible(self.file_path)} in {places}: {self.size} bytes"
        return f"{head}, sha256 {short_digest(self.sha256)}\n{self.diff}"


@tool(
    scope=ToolScope.SANDBOXED,
    effects={Effect.READ, Effect.WRITE},
    destructive=True,
    tags=("files",),
    capabilities=("replace a passage in a text file", "change some words or lines of a file"),
    aliases_elsewhere=("edit", "str_replace", "replace", "search_replace"),
    ignored=("instruction",),
    subject=Subject(SubjectKind.PATH, "file_path"),
)
def edit_file(
    context: RequestContext,
    file_path: Annotated[FilePath, FILE_NAMES],
    old_text: Annotated[
        Passage,
        Field(description="A passage of the file, exactly; once in it"),
        Alias("old_string", "old_str", "oldText", "oldString"),
    ],
    new_text: Annotated[
        Passage,
        Field(description="What takes its place"),
        Alias("new_string", "new_str", "newText", "newString"),
    ],
    replace_all: Annotated[
        bool,
        Field(description="Every occurrence, not only one"),
        Alias("replaceAll", "allow_multiple"),
    ] = False,
    encoding: Encoding | None = None,
    expected_sha256: Digest | None = None,
) -> FileEdited:
    """Replaces a passage of a text file; every other byte stays, line ends too."""
    if not old_text:
        raise InvalidArgumentsError(
            "old_text is empty.",
            next_actions=["Call insert_text_file to add lines, or write_file for a whole file."],
        )

    def changes(text: str) -> Changes:
        passages = Passages(text, old_text)
        if passages.is_same(new_text):
            raise InvalidArgumentsError(
                "old_text and new_text are the same; line ends do not count.",
                next_actions=["Give the changed text in new_text."],
            )
        _check_found(file_path, text, old_text, passages.lines(), replace_all=replace_all)
        return partial(passages.changes, new_text)

    return _edit(context, file_path, changes, encoding, expected_sha256)


@tool(
    scope=ToolScope.SANDBOXED,
    effects={Effect.READ, Effect.WRITE},
    tags=("files",),
    capabilities=("put lines into a text file", "append to a text file"),
    aliases=("insert_file",),
    aliases_elsewhere=("insert",),
    subject=Subject(SubjectKind.PATH, "file_path"),
)
def insert_text_file(
    context: RequestContext,
    file_path: Annotated[FilePath, FILE_NAMES],
    content: Annotated[
        Passage, Field(description="The new lines"), Alias("insert_text", "new_str")
    ],
    line_number: Annotated[
        int,
        Field(
            description="Before this line, from 1; negative from the end; one past the last appends"
        ),
        Alias("insert_line", read=lambda given: int(given["insert_line"]) + 1),  # after that line
    ],
    encoding: Encoding | None = None,
    expected_sha256: Digest | None = None,
) -> FileEdited:
    """Inserts lines into a text file; every other byte stays."""

    def changes(text: str) -> Changes:
        change = inserted(text, line_number, content)
        return lambda: (change,)

    return _edit(context, file_path, changes, encoding, expected_sha256)


@tool(
    scope=ToolScope.SANDBOXED,
    effects={Effect.READ, Effect.WRITE},
    destructive=True,
    tags=("files",),
    capabilities=("make several edits in one file at once", "preview edits of a file"),
    subject=Subject(SubjectKind.PATH, "file_path"),
)
def multi_edit(
    context: RequestContext,
    file_path: Annotated[FilePath, FILE_NAMES],
    edits: Annotated[
        list[PassageEdit],
        Field(min_length=1, max_length=MAX_EDITS, description="One after another"),
    ],
    dry_run: Annotated[bool, Field(description="Only show the diff"), Alias("dryRun")] = False,
) -> FileEdits:
    """Replaces several passages of a text file, all of them or none; see edit_file."""
    seen = list[tuple[bytes, bytes]]()

    def edit(old: bytes) -> bytes:
        present = editable_text(file_path, old, None)
        text = present.text
        for number, each in enumerate(edits, 1):
            passages = Passages(text, each.old_text)
            try:
                lines = passages.lines()
                _check_found(file_path, text, each.old_text, lines, replace_all=each.replace_all)
                text = applied(text, _Bounded(file_path, text, passages.changes(each.new_text)))
            except InvalidArgumentsError as error:
                raise InvalidArgumentsError(
                    f"Edit {number} of {len(edits)}: {error.message} Nothing was changed.",
                    suggestions=error.suggestions,
                    next_actions=error.next_actions,
                ) from None
        seen.append((old, present.bom + encode_text(text, present.encoding)))
        return seen[0][1]

    if dry_run:
        with context.sandbox.open_read(file_path) as file:
            edit(whole_content(os.dup(file.fileno()), file_path))
        path = context.sandbox.relative(file_path)
    else:
        path = context.sandbox.edit(file_path, edit).path
    old, new = seen[0]
    name = unicode_name(path)
    return FileEdits(
        file_path=name,
        edits=len(edits),
        dry_run=dry_run,
        sha256=digest_of(new),
        diff=unified(visible(name), old, new),
    )


def _edit(
    context: RequestContext,
    file_path: str,
    changes: Callable[[str], Changes],
    encoding: str | None,
    expected_sha256: str | None,
) -> FileEdited:
    done: list[tuple[str, str, Changes, int]] = []

    def edit(old: bytes) -> bytes:
        present = editable_text(file_path, old, encoding)
        made = changes(present.text)
        bounded = _Bounded(file_path, present.text, made())
        text = applied(present.text, bounded)
        done.append((present.encoding, present.text, made, bounded.count))
        return present.bom + encode_text(text, present.encoding)

    written = context.sandbox.edit(file_path, edit, expected_sha256=expected_sha256)
    name, text, made, count = done[0]
    touched = list(itertools.islice(hunks(text, made()), MAX_LISTED))
    return FileEdited.from_attributes(
        written,
        file_path=unicode_name(written.path),
        encoding=name,
        changes=count,
        lines=[(hunk.new_line, hunk.new_last) for hunk in touched],
        diff=format_hunks(touched, limit=MAX_DIFF_CHARACTERS),
    )


def _check_found(
    path: str, text: str, old_text: str, lines: Sequence[int], *, replace_all: bool
) -> None:
    """Raises an error unless the passage occurs, and only once if it must be unique."""
    if not lines:
        raise InvalidArgumentsError(
            f"old_text does not occur in {path!r}, as it was given.",
            suggestions=similar_lines(text, old_text),
            next_actions=["Call read_file and copy the passage exactly."],
        )
    if len(lines) > 1 and not replace_all:
        count = f"{len(lines)} times{' or more' * (len(lines) == MOST_COUNTED)}"
        listed = ", ".join(map(str, dict.fromkeys(lines[:MAX_LISTED])))
        more = ", …" if len(lines) > MAX_LISTED else ""
        raise InvalidArgumentsError(
            f"old_text occurs {count} in {path!r}, beginning at lines {listed}{more}.",
            next_actions=[
                "Give more of the text around the one that is meant, or replace_all=true."
            ],
        )


class _Bounded:
    """Changes, checked against the size limit of the result."""

    def __init__(self, path: str, text: str, changes: Iterable[Change]) -> None:
        self._path = path
        self._length = len(text)
        self._changes = changes
        self.count = 0

    def __iter__(self) -> Iterator[Change]:
        for change in self._changes:
            self.count += 1
            self._length += len(change.new) - (change.end - change.start)
            if self._length > MAX_EDIT_BYTES:
                raise InvalidArgumentsError(
                    f"{self._path!r} would have more than {MAX_EDIT_BYTES} characters.",
                    next_actions=["Put in less, or write into several files."],
                )
            yield change
