"""The worker process: walks, reads and matches, so that the server never waits for a pattern.

It is given open directories by its socket, takes one JSON object a line and answers each with one.
A pattern that backtracks for ever is ended from outside; should nobody be left to do that, an
alarm ends it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from tools.core.filesearch.content import MAX_FILE_BYTES, WIDE_MARKS, cut, lines_of, text_of
from tools.core.filesearch.linewise import stays_in_line
from tools.core.filesearch.literal import literal_of
from tools.core.filesearch.opening import Ladder
from tools.core.filesearch.ranking import WordRanking
from tools.core.filesearch.tree import File, Tree, Walk

__all__ = ["main"]

Message = dict[str, Any]
Search = Callable[[str], re.Match[str] | None]

MAX_MEMORY = 2 << 30
"""Bytes of address space: a file of the largest size fits, as text and as lines."""

CHUNK = 1 << 16


def main() -> None:
    """Serves the server at the other end of the socket that is its standard input."""
    _limit_memory()
    with socket.socket(fileno=0) as channel:
        desk = _Desk()
        for message, fds in _messages(channel):
            signal.alarm(message["seconds"])
            try:
                answer = desk.take(message, fds)
            except re.error as error:
                answer = {"malformed": error.msg, "position": error.pos}
            except (OverflowError, RecursionError) as error:
                answer = {"malformed": str(error), "position": None}
            except OSError as error:
                answer = {"errno": error.errno}
            except MemoryError:
                answer = {"exhausted": True}
            signal.alarm(0)
            channel.sendall(json.dumps(answer).encode() + b"\n")


class _Desk:
    """Does what the messages ask for, about the place that the last `open` gave."""

    def __init__(self) -> None:
        self._fds: list[int] = []
        self._read: Callable[[str], int] = _nothing_open
        self._close: Callable[[], None] = lambda: None
        self._closed: frozenset[tuple[int, int]] = frozenset()
        self._tree = Tree()
        self._worth: frozenset[str] | None = None
        self._literal = b""
        self._folds = False
        self._whole: Search | None = None
        self._results: Iterator[Message | None] = iter(())

    def take(self, message: Message, fds: list[int]) -> Message:
        operation: Callable[..., Message] = getattr(self, f"_do_{message['do']}")
        arguments = {
            name: value for name, value in message.items() if name not in {"do", "seconds"}
        }
        return operation(fds, **arguments) if fds else operation(**arguments)

    def _do_open(
        self, fds: list[int], prefix: str, closed: list[list[int]], *, include_ignored: bool
    ) -> Message:
        """Walks beneath a directory."""
        self._forget()
        self._fds = fds
        root, start = fds
        self._closed = frozenset((device, inode) for device, inode in closed)
        walk = Walk(root, start, prefix, closed=self._closed, include_ignored=include_ignored)
        self._tree = walk.run()
        ladder = Ladder(start)
        self._read, self._close = ladder.open, ladder.close
        return {
            "left_out": self._tree.left_out,
            "unreadable": self._tree.unreadable,
            "truncated": self._tree.truncated,
        }

    def _do_open_file(self, fds: list[int], name: str) -> Message:
        """Takes one open file for all that there is."""
        self._forget()
        self._fds = fds
        status = os.fstat(fds[0])
        self._tree = Tree([File(name, is_link=False, size=status.st_size, mtime=status.st_mtime)])
        self._read = lambda _path: os.dup(fds[0])
        return {"left_out": [], "unreadable": [], "truncated": False}

    def _do_glob(self, names: str) -> Message:
        """Files and links by their paths, the newest first."""
        fits = re.compile(names, re.DOTALL).fullmatch
        found = [file for file in self._tree.files if fits(file.path)]
        found.sort(key=lambda file: (-file.mtime, file.path))
        self._results = (file._asdict() for file in found)
        return {"files": len(found)}

    def _do_grep(
        self,
        pattern: str,
        names: str,
        context: int,
        *,
        ignore_case: bool,
    ) -> Message:
        """Lines in which a pattern fits."""
        fits = re.compile(pattern, re.IGNORECASE if ignore_case else 0).search
        self._literal = literal_of(pattern, ignore_case=ignore_case).encode()
        self._folds = ignore_case
        self._whole = _on_whole_text(pattern, ignore_case=ignore_case)
        files = self._fitting(names)
        self._results = self._matches(fits, files, context)
        return self._told(files)

    def _do_rank(self, words: list[str], names: str) -> Message:
        """Files by words in their names and lines."""
        files = self._fitting(names)
        self._whole = _on_whole_text(WordRanking.pattern(words), ignore_case=True)
        self._results = self._ranked(WordRanking(words), files)
        return self._told(files)

    def _do_narrow(self, candidates: list[str]) -> Message:
        """From now on only these files are read: in the others is nothing."""
        self._worth = frozenset(candidates)
        return {}

    def _do_more(self, count: int, seconds_at_most: float) -> Message:
        """The next results, as many as there are after some time."""
        items: list[Message] = []
        until = time.monotonic() + seconds_at_most
        is_last = True
        for item in self._results:
            if item is not None:
                items.append(item)
            if len(items) >= count or time.monotonic() > until:
                is_last = False
                break
        return {"items": items, "is_last": is_last, "unreadable": self._tree.unreadable}

    def _fitting(self, names: str) -> list[File]:
        fits = re.compile(names, re.DOTALL).fullmatch
        return [each for each in self._tree.files if not each.is_link and fits(each.path)]

    def _told(self, files: list[File]) -> Message:
        large = [file.path for file in files if file.size > MAX_FILE_BYTES]
        return {"files": len(files), "large": large}

    def _matches(
        self,
        fits: Search,
        files: list[File],
        context: int,
    ) -> Iterator[Message | None]:
        """The matches of each file, and None after it."""
        for file in files:
            lines = self._lines(file) or []
            for at, line in enumerate(lines):
                if match := fits(line):
                    yield {
                        "path": file.path,
                        "line": at + 1,
                        "text": cut(line, *match.span()),
                        "before": [cut(each, 0, 0) for each in lines[max(at - context, 0) : at]],
                        "after": [cut(each, 0, 0) for each in lines[at + 1 : at + 1 + context]],
                    }
            yield None

    def _ranked(self, ranking: WordRanking, files: list[File]) -> Iterator[Message | None]:
        """None after each file, then the files that fit."""
        for file in files:
            ranking.see(file.path, self._lines(file) or ())
            yield None
        yield from map(asdict, ranking.best(len(files)))

    def _lines(self, file: File) -> list[str] | None:
        """The lines of a file; None where nothing is in them, and where it cannot be read."""
        is_worth = self._worth is None or file.path in self._worth
        if file.size > MAX_FILE_BYTES or not is_worth:
            return None
        try:
            data = self._data(self._read(file.path))
        except FileNotFoundError:
            return None
        except OSError:
            self._tree.unreadable.append(file.path)
            return None
        text = text_of(data) if self._can_fit(data) else None
        if text is None or (self._whole and "\r" not in text and not self._whole(text)):
            return None
        return lines_of(text)

    def _data(self, fd: int) -> bytes:
        """What is in an open file, which is closed; nothing where it is closed to reads."""
        try:
            status = os.fstat(fd)
            if (status.st_dev, status.st_ino) in self._closed:
                return b""
            return _up_to(fd, status.st_size, MAX_FILE_BYTES)
        finally:
            os.close(fd)

    def _can_fit(self, data: bytes) -> bool:
        """Whether the text without which nothing fits is in a file, as far as bytes tell."""
        if not self._literal or data[:2] in WIDE_MARKS:
            return True
        return self._literal in (data.lower() if self._folds else data)

    def _forget(self) -> None:
        self._close()
        self._close = lambda: None
        for fd in self._fds:
            os.close(fd)
        self._fds = []
        self._tree = Tree()
        self._worth = None
        self._literal = b""
        self._whole = None
        self._results = iter(())


def _on_whole_text(pattern: str, *, ignore_case: bool) -> Search | None:
    """Looks whether a pattern fits in any line of a text; None where only the lines tell."""
    if not stays_in_line(pattern, ignore_case=ignore_case):
        return None
    return re.compile(pattern, re.MULTILINE | (re.IGNORECASE if ignore_case else 0)).search


def _nothing_open(path: str) -> int:
    raise FileNotFoundError(path)


def _up_to(fd: int, size: int, most: int) -> bytes:
    """The first bytes of a file that had a size when it was looked at, and may grow meanwhile."""
    data = os.read(fd, min(size + 1, most))
    if len(data) == size:
        return data
    chunks = [data]
    while chunks[-1] and (left := most - sum(map(len, chunks))) > 0:
        chunks.append(os.read(fd, left))
    return b"".join(chunks)


def _messages(channel: socket.socket) -> Iterator[tuple[Message, list[int]]]:
    """What the server sends, each with the descriptors that came with it."""
    received, fds = b"", list[int]()
    while True:
        chunk, came, _, _ = socket.recv_fds(channel, CHUNK, 2)
        if not chunk:
            return
        fds += came
        received += chunk
        while b"\n" in received:
            line, _, received = received.partition(b"\n")
            yield json.loads(line), fds
            fds = []


def _limit_memory() -> None:
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource  # noqa: PLC0415  # not on Windows

        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # deep trees
        if sys.platform != "darwin":  # which cannot limit address space
            resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
