"""Patches: changes several files at once, as a diff describes."""

from __future__ import annotations

import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from storage.keeping.changes.models import FileState
from tools.core.collections import Collections
from tools.core.context import RequestContext
from tools.core.errors import (
    ConflictError,
    InvalidArgumentsError,
    NotFoundError,
    ToolError,
    UnavailableError,
)
from tools.core.result import OmitNone, ToolModel
from tools.core.spec import Alias, Effect, FileAct, Subject, SubjectKind, ToolScope, ToolSpec, tool
from tools.sandbox.files.patch_hunks import apply_hunks
from tools.sandbox.files.patches import FilePatch, parse_patch
from tools.sandbox.files.replace import MAX_EDIT_BYTES
from tools.sandbox.files.resolve import Found, digest_of
from tools.sandbox.files.sandbox import Sandbox
from tools.sandbox.files.text_files import editable_text, encode_text, unicode_name, visible

MAX_PATCH_CHARACTERS = 1_000_000  # limit on a patch

_LETTERS = {"added": "A", "updated": "M", "deleted": "D", "moved": "R", "copied": "C"}

ChangeKind = Literal["added", "updated", "deleted", "moved", "copied"]


class PatchedFile(ToolModel):
    """A change that a patch made.

    Attributes:
        file_path: The file, relative to the root.
        change: The kind of change.
        former_path: Where a moved or copied file was.
        sha256: Digest of the new content; absent if it was deleted.
    """

    file_path: str
    change: ChangeKind
    former_path: OmitNone[str] = None
    sha256: OmitNone[str] = None

    def to_text(self) -> str:
        """Formats it as one line, as git does."""
        former = f"{visible(self.former_path)} -> " if self.former_path else ""
        return f"{_LETTERS[self.change]} {former}{visible(self.file_path)}"


class Patched(ToolModel):
    """The result of a patch.

    Attributes:
        files: The files in the order of the patch.
    """

    files: list[PatchedFile]

    def to_text(self) -> str:
        """Formats one line per file."""
        count = "1 file" if len(self.files) == 1 else f"{len(self.files)} files"
        return "\n".join([f"Changed {count}:", *(each.to_text() for each in self.files)])


def _checked(patch: str) -> str:
    parse_patch(patch)  # before anyone is asked about it
    return patch


def _acts(arguments: Mapping[str, Any]) -> Sequence[FileAct]:
    """Returns the file tools that the patch stands for, with their paths."""
    acts = list[FileAct]()
    for each in parse_patch(arguments["patch"]):
        if each.kind == "copy":
            acts.append(FileAct("read_file", each.path))
        if each.kind == "update":
            acts.append(FileAct("edit_file", each.path))
        if each.is_move or each.kind in {"add", "delete"}:
            acts.append(FileAct("write_file", each.path))
        if each.target != each.path:
            acts.append(FileAct("write_file", each.target))
    return list(dict.fromkeys(acts))


def _explained(spec: ToolSpec, _collections: Collections) -> ToolSpec:
    def explain(arguments: Mapping[str, Any]) -> str:
        return "; ".join(
            f"{each.kind} {each.path}" + f" to {each.target}" * (each.target != each.path)
            for each in parse_patch(arguments["patch"])
        )

    return replace(spec, explain=explain)


@tool(
    scope=ToolScope.SANDBOXED,
    effects={Effect.READ, Effect.WRITE},
    destructive=True,
    customize=_explained,
    tags=("files",),
    capabilities=("apply a patch or a diff to files", "change, move and delete several files"),
    aliases_elsewhere=("applypatch",),
    subject=Subject(SubjectKind.PATH, acts=_acts),
)
def apply_patch(
    context: RequestContext,
    patch: Annotated[
        str,
        Field(max_length=MAX_PATCH_CHARACTERS, description="*** Begin Patch …, or a unified diff"),
        Alias("input", "diff", "patch_content"),
        AfterValidator(_checked),
    ],
) -> Patched:
    """Applies a patch to files inside the root, all of it or nothing; undo takes it back at once.

    Takes Codex's form (*** Begin Patch) and unified diffs, git's too: with new, deleted, moved and
    copied files. Line numbers may be off where the lines fit at one place alone.
    """
    plan = _Plan(context.sandbox)
    files = [plan.add(each) for each in parse_patch(patch)]
    plan.write()
    return Patched(files=files)


@dataclass(slots=True)
class _Plan:
    """What a patch changes, computed whole before the first write."""

    sandbox: Sandbox
    before: dict[str, Found] = field(default_factory=dict)
    after: dict[str, bytes | None] = field(default_factory=dict)
    modes: dict[str, int] = field(default_factory=dict)
    current: dict[str, bytes] = field(default_factory=dict)  # what a later part of the patch reads
    fresh: set[str] = field(default_factory=set)
    leaving: set[str] = field(default_factory=set)

    def add(self, patch: FilePatch) -> PatchedFile:
        """Computes one part of the patch."""
        path, target = map(self.sandbox.relative, (patch.path, patch.target))
        if patch.kind == "add":
            content = apply_hunks(target, "", patch.hunks).encode()
            self.current[target] = content
            self._create(target, content, stat.S_IFREG | patch.mode if patch.mode else 0)
            return _result(target, "added", content)
        old = self._content(path, is_former=patch.kind == "copy")
        present = editable_text(path, old, None) if patch.hunks else None
        text = apply_hunks(path, present.text, patch.hunks) if present else ""
        if patch.kind == "delete":
            if text:
                raise ConflictError(
                    f"{path!r} has more lines than the patch deletes.",
                    next_actions=["Read the file, and send a patch for all of it."],
                )
            self._remove(path)
            return PatchedFile(file_path=unicode_name(path), change="deleted")
        content = present.bom + encode_text(text, present.encoding) if present else old
        mode = self.before[path].state.mode if path in self.before else 0
        if patch.mode is not None and mode:
            mode = mode & ~0o111 | patch.mode & 0o111 & ((mode & 0o444) >> 2)
        if path == target:
            self.current[path] = self.after[path] = content
            self.modes[path] = mode
            return _result(path, "updated", content)
        self._create(target, content, mode)
        if patch.kind == "copy":
            return _result(target, "copied", content, path)
        self._remove(path)
        return _result(target, "moved", content, path)

    def write(self) -> None:
        """Writes everything, or takes back what it wrote if something fails."""
        for path in self.fresh - self.leaving:
            if self.before[path].state.state:
                raise ConflictError(
                    f"{path!r} exists already; nothing was changed.",
                    next_actions=["Send an update of it, or another path."],
                )
        for path in self.after:
            if not self._is_below_a_leaving_one(path):
                self.sandbox.check_write(path)
        written = list[str]()
        try:
            for path in sorted(self.after, key=self._turn):
                state = self.before[path].state
                self.sandbox.restore(path, self.after[path], self.modes[path], expected=state)
                written.append(path)
        except BaseException as error:
            self._take_back(written, error)
            raise

    def _content(self, path: str, *, is_former: bool) -> bytes:
        if path in self.current and not is_former:  # git copies a file as it was
            return self.current[path]
        found = self._look(path)
        if found.content is None:
            why = found.state.why or "no file"
            raise (InvalidArgumentsError if found.state.state else NotFoundError)(
                f"{path!r} is {why}; nothing was changed.",
                next_actions=["Call list_directory to see what is there."],
            )
        if len(found.content) > MAX_EDIT_BYTES:
            raise InvalidArgumentsError(
                f"{path!r} has {len(found.content)} bytes; at most {MAX_EDIT_BYTES} are patched.",
                next_actions=["Change it with a program, or split it first."],
            )
        return found.content

    def _look(self, path: str) -> Found:
        if path not in self.before:
            self.before[path] = self.sandbox.examine(path, FileState("", 0))
        return self.before[path]

    def _create(self, path: str, content: bytes, mode: int) -> None:
        if path in self.fresh:
            raise InvalidArgumentsError(
                f"The patch creates {path!r} twice.", next_actions=["Create it once."]
            )
        self._look(path)
        self.fresh.add(path)
        self.after[path], self.modes[path] = content, mode

    def _remove(self, path: str) -> None:
        if path in self.leaving:
            raise InvalidArgumentsError(
                f"The patch moves or deletes {path!r} twice.", next_actions=["Do it once."]
            )
        if path in self.current and path in self.fresh:
            raise InvalidArgumentsError(
                f"The patch creates {path!r} and takes it away.",
                next_actions=["Create it under its last path alone."],
            )
        self.leaving.add(path)
        if path not in self.fresh:
            self.after[path], self.modes[path] = None, 0

    def _is_below_a_leaving_one(self, path: str) -> bool:
        return any(path.startswith(f"{each}/") for each in self.leaving)

    def _turn(self, path: str) -> int:
        """Returns when a path is written: a file that becomes a directory leaves first."""
        if self.after[path] is not None:
            return 1
        return 0 if any(each.startswith(f"{path}/") for each in self.after) else 2

    def _take_back(self, written: Sequence[str], error: BaseException) -> None:
        left = list[str]()
        for path in reversed(written):
            found = self.before[path]
            try:
                now = self.sandbox.examine(path, found.state).state
                self.sandbox.restore(path, found.content, found.state.mode, expected=now)
            except ToolError:
                left.append(path)
        if left:
            raise UnavailableError(
                f"The patch failed halfway; {', '.join(map(repr, left))} could not be put back.",
                next_actions=["Call list_changes, and undo_change for what it lists."],
            ) from error


def _result(path: str, change: ChangeKind, content: bytes, former: str = "") -> PatchedFile:
    return PatchedFile(
        file_path=unicode_name(path),
        change=change,
        former_path=unicode_name(former) or None,
        sha256=digest_of(content),
    )
