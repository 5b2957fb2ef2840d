"""Writes planned changes to clients' files, remembers them, and undoes them."""

from __future__ import annotations

import copy
import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from pathlib import Path
from typing import Any

from server.clients.backups import back_up, backups_of, make_folders, prune, remove, replace
from server.clients.locations import OwnAddress, own_handlers, runs_only_hooks, starts_toolcrib
from server.clients.pieces import (
    GENERATED,
    FileChange,
    Format,
    Placed,
    Plan,
    Refusal,
    checked,
    decoded,
    lookup,
    parse_document,
    read_editable,
)
from storage.keeping.atomic import atomic_file
from storage.locks import locked
from tools.core.errors import ConflictError
from tools.sandbox.files.resolve import digest_of

RECEIPTS = "installed.json"
"""The file in the data directory that says what was written into which client's file."""


RESTORED = "restored byte for byte"
"""How an undo was done that left nothing of ours."""


@dataclass(slots=True)
class Receipt:
    """What was written into one file."""

    path: Path
    after: str  # digest of the file as we left it
    before: str = ""  # digest of the file before; empty if it did not exist or cannot be restored
    backup: str = ""  # the copy of the file before, next to it
    created: bool = False  # whether the file did not exist
    folders: list[str] = field(default_factory=list)  # the folders that were made for it
    placed: list[Placed] = field(default_factory=list)

    @property
    def restorable(self) -> bytes | None:
        """The file as it was before, if its backup is still there."""
        backup = self.path.with_name(self.backup) if self.backup else None
        old = backup.read_bytes() if backup is not None and backup.is_file() else None
        return old if old is not None and digest_of(old) == self.before else None

    def forget_before(self) -> None:
        """Restores no whole file from now on, because the file was edited after us."""
        self.before = self.backup = ""
        self.created, self.folders = False, []

    def as_json(self) -> dict[str, Any]:
        """Returns what `from_json` reads."""
        names = ("after", "before", "backup", "created", "folders")
        said = {name: getattr(self, name) for name in names}
        placed = [each.as_json() for each in self.placed]
        return {"path": str(self.path), **said, "pieces": placed}

    @classmethod
    def from_json(cls, said: dict[str, Any]) -> Receipt:
        """Reads what `as_json` returned."""
        path, pieces = Path(said.pop("path")), said.pop("pieces")
        return cls(path, **said, placed=[Placed.from_json(path, each) for each in pieces])


class Receipts:
    """The receipts of a data directory."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / RECEIPTS

    def read(self) -> dict[Path, Receipt]:
        """Returns the receipts by file."""
        try:
            said = json.loads(self._path.read_bytes())
            found = [Receipt.from_json(each) for each in said["files"]]
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConflictError(
                f"{self._path} cannot be read: {error}.",
                next_actions=["Move it away; backups of the files are next to them."],
            ) from error
        return {each.path: each for each in found}

    def apply(self, changes: Iterable[FileChange]) -> list[Refusal]:
        """Writes the changes that are needed; returns the files that changed meanwhile."""
        folder = self._path.parent
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with locked(self._path.with_suffix(".lock"), wait=True):
                return list(self._refused(changes))
        except OSError as error:
            raise ConflictError(f"{folder} cannot be written: {error.strerror}.") from error

    def plan_undo(self, clients: Collection[str], own: OwnAddress) -> Plan:
        """Returns how to undo what was written for some clients; changes nothing."""
        made = Plan()
        for receipt in self.read().values():
            mine = [each for each in receipt.placed if each.piece.client in clients]
            if not mine:
                continue
            try:
                made.changes.append(_undone(receipt, mine, own))
            except (ConflictError, RecursionError) as error:
                names = tuple(dict.fromkeys(each.piece.client for each in mine))
                deep = "it is nested too deeply"
                reason = error.message if isinstance(error, ConflictError) else deep
                made.refusals.append(Refusal(receipt.path, names, reason))
        return made

    def _refused(self, changes: Iterable[FileChange]) -> Iterator[Refusal]:
        receipts = self.read()
        for change in changes:
            if not (change.is_needed or change.note):
                continue
            try:
                self._apply(change, receipts)
            except (ConflictError, OSError) as error:
                reason = error.message if isinstance(error, ConflictError) else str(error)
                yield Refusal(change.path, change.clients, reason)

    def _apply(self, change: FileChange, receipts: dict[Path, Receipt]) -> None:
        path = change.path
        if read_editable(path) != change.before:
            raise ConflictError("another program changed it meanwhile; run the command again")
        receipt = receipts.get(path)
        if change.note:
            self._undo(change, receipts)
            return
        folders = make_folders(path.parent)
        digest = digest_of(change.before) if change.before is not None else ""
        after = change.after or b""
        backup = "" if change.before is None else back_up(path, change.before)
        if receipt is None or change.before is None:
            receipt = Receipt(path, "", digest, backup, change.before is None, folders)
        elif digest not in {receipt.after, receipt.before}:  # before: we were killed in between
            receipt.forget_before()
        receipt.after = digest_of(after)
        receipt.placed = _merged(receipt.placed, change.placed)
        receipts[path] = receipt
        self._write(receipts)  # before the file: a kill in between leaves nothing to undo
        replace(path, after)
        prune(path, receipt.backup)

    def _undo(self, change: FileChange, receipts: dict[Path, Receipt]) -> None:
        receipt = receipts[change.path]
        is_whole = change.note == RESTORED or (change.after is None and receipt.created)
        if change.after is not None and change.is_needed:
            back_up(change.path, change.before or b"")
            replace(change.path, change.after)
        elif change.is_needed:
            remove(change.path)
        if is_whole:  # the backups are this file, or have our part in them
            for each in backups_of(change.path):
                each.unlink(missing_ok=True)
        if change.after is None:
            for folder in reversed(receipt.folders):
                with suppress(OSError):  # another program's files are in it
                    Path(folder).rmdir()
        if change.before is not None and digest_of(change.before) != receipt.after:
            receipt.forget_before()
        gone = set(change.clients)
        receipt.placed = [each for each in receipt.placed if each.piece.client not in gone]
        receipt.after = digest_of(change.after or b"")
        if not receipt.placed:
            del receipts[change.path]
        self._write(receipts)

    def _write(self, receipts: dict[Path, Receipt]) -> None:
        files = [each.as_json() for each in receipts.values()]
        with atomic_file(self._path, replace=True) as temporary:
            temporary.write_text(json.dumps({"version": 1, "files": files}, indent=2) + "\n")


def _merged(old: Iterable[Placed], new: Iterable[Placed]) -> list[Placed]:
    """Returns all pieces of a file; what existed before the first installation counts."""
    found = {(each.piece.client, each.keys, each.piece.append): each for each in old}
    for each in new:
        key = (each.piece.client, each.keys, each.piece.append)
        found[key] = replaced(each, existed=found.get(key, each).existed)
    return list(found.values())


def _undone(receipt: Receipt, mine: list[Placed], own: OwnAddress) -> FileChange:
    path, placed = receipt.path, tuple(mine)
    current = read_editable(path)
    if current is None:
        return FileChange(path, None, None, placed, "it is gone already")
    if len(mine) == len(receipt.placed):
        digest = digest_of(current)
        if digest == receipt.before:
            return FileChange(path, current, current, placed, "it is as it was before")
        if digest == receipt.after and receipt.created:
            return FileChange(path, current, None, placed, "removed, as it did not exist before")
        if digest == receipt.after and (old := receipt.restorable) is not None:
            return FileChange(path, current, old, placed, RESTORED)
    if mine[0].piece.format is Format.WHOLE:
        if GENERATED.encode() not in current:
            raise ConflictError("it was replaced by a file that is not ours")
        return FileChange(path, current, None, placed, "removed")
    shared = {each.keys for each in receipt.placed if each not in mine}
    text, mark = decoded(current)
    for each in mine:
        if each.keys in shared:  # two clients read one entry
            continue
        text = without(text, each, own)
    is_empty = receipt.created and "".join(text.split()) in {"", "{}"}  # without comments
    after = None if is_empty else (mark + text).encode()
    return FileChange(path, current, after, placed, "edited since: only our part was removed")


def without(text: str, placed: Placed, own: OwnAddress) -> str:
    """Returns a text without a piece, and without the objects that were made for it."""
    kind, keys = placed.piece.format, placed.keys
    holder = lookup(parse_document(text, kind).values, keys if placed.piece.append else keys[:-1])
    if placed.piece.append:
        items = holder if isinstance(holder, list) else []
        for index in reversed(range(len(items))):
            if items[index] == placed.piece.value or runs_only_hooks(items[index], own):
                text = _remove_at(text, kind, (*keys, index))
                continue
            for at in reversed(own_handlers(items[index], own)):  # the others are the user's
                text = _remove_at(text, kind, (*keys, index, "hooks", at))
    elif isinstance(holder, dict) and keys[-1] in holder:
        if placed.existed == len(keys) and not starts_toolcrib(holder[keys[-1]], own):
            return text  # it was there before us, such as the version of a file
        text = _remove_at(text, kind, keys)
    for depth in range(len(keys) - (not placed.piece.append), placed.existed, -1):
        holder = lookup(parse_document(text, kind).values, keys[: depth - 1])
        if isinstance(holder, dict) and holder.get(keys[depth - 1], 1) in ({}, [], None):
            text = _remove_at(text, kind, keys[:depth])
    return text


def _remove_at(text: str, kind: Format, keys: tuple[str | int, ...]) -> str:
    document = parse_document(text, kind)
    expected = copy.deepcopy(document.values)
    _drop(expected, keys)
    try:
        made = document.remove(keys)
    except ValueError as error:
        raise ConflictError(str(error)) from error
    values = parse_document(made, kind).values
    for depth in range(len(keys) - 1, 0, -1):
        # With its last member, a table without a header disappears (TOML), or becomes null (YAML).
        if lookup(values, keys[:depth]) is None and lookup(expected, keys[:depth]) == {}:
            _drop(expected, keys[:depth])
            if keys[depth - 1] in (lookup(values, keys[: depth - 1]) or {}):
                lookup(expected, keys[: depth - 1])[keys[depth - 1]] = None
    return checked(made, kind, expected)


def _drop(values: Any, keys: Sequence[str | int]) -> None:  # noqa: ANN401  # any document
    for key in keys[:-1]:
        values = values[key]
    del values[keys[-1]]
