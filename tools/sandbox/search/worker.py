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
from collections.abc import Callable, Iterator
from dataclasses import asdict
from itertools import islice
from typing import Any

from tools.sandbox.search.content import MAX_FILE_BYTES, WIDE_MARKS, cut, lines_of, text_of
from tools.sandbox.search.opening import Ladder
from tools.sandbox.search.prefilter import PlainText, stays_in_line
from tools.sandbox.search.ranking import WordRanking
from tools.sandbox.search.tree import File, Tree, Walk

__all__ = ["main"]

Message = dict[str, Any]
Search = Callable[[str], re.Match[str] | None]

MAX_MEMORY = 2 << 30
"""Bytes of address space: a file of the largest size fits, as text and as lines."""

CHUNK = 1 << 16

_OF_EVERY = frozenset({"do", "seconds", "place", "count"})
"""What messages say besides the arguments of what they ask for."""


def main() -> None:
    """Serves the server at the other end of the socket that is its standard input."""
    _limit_memory()
    with socket.socket(fileno=0) as channel:
        requests = _Requests()
        for message, fds in _messages(channel):
            signal.alarm(message["seconds"])
            try:
                answer = requests.take(message, fds)
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


class _SingleFile:
    """One open file, as a ladder has many."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def open(self, _path: str) -> tuple[int, os.stat_result]:
        return os.dup(self._fd), os.fstat(self._fd)

    def close(self) -> None:
        """Its descriptor is closed by whoever has it."""


class _Requests:
    """Does what the messages ask for, about the place that the last search was given."""

    def __init__(self) -> None:
        self._fds: list[int] = []
        self._files: Ladder | _SingleFile = _SingleFile(-1)
        self._closed: frozenset[tuple[int, int]] = frozenset()
        self._tree = Tree()
        self._large: list[str] = []
        self._plain: PlainText | None = None
        self._whole: Search | None = None
        self._results: Iterator[Message] = iter(())

    def take(self, message: Message, fds: list[int]) -> Message:
        arguments = {name: each for name, each in message.items() if name not in _OF_EVERY}
        if message["do"] == "more":
            return self._more(message["count"])
        self._enter(fds, **message["place"], detailed=message["do"] == "glob")
        search: Callable[..., int] = getattr(self, f"_do_{message['do']}")
        return {"files": search(**arguments)} | self._more(message["count"])

    def _enter(
        self,
        fds: list[int],
        prefix: str,
        name: str,
        closed: list[list[int]],
        *,
        include_ignored: bool,
        detailed: bool,
    ) -> None:
        """Takes one open file for all that there is, or walks beneath a directory."""
        self._forget()
        self._fds = fds
        if name:
            status = os.fstat(fds[0])
            self._tree = Tree(
                [File(name, is_link=False, size=status.st_size, mtime=status.st_mtime)]
            )
            self._files = _SingleFile(fds[0])
            return
        root, start = fds
        self._closed = frozenset((device, inode) for device, inode in closed)
        self._tree = Walk(
            root,
            start,
            prefix,
            closed=self._closed,
            include_ignored=include_ignored,
            detailed=detailed,
        ).run()
        self._files = Ladder(start)

    def _do_glob(self, names: str) -> int:
        """Files and links by their paths, the newest first."""
        fits = re.compile(names, re.DOTALL).fullmatch
        found = [file for file in self._tree.files if fits(file.path)]
        found.sort(key=lambda file: (-file.mtime, file.path))
        self._results = (file._asdict() for file in found)
        return len(found)

    def _do_grep(self, pattern: str, names: str, context: int, *, ignore_case: bool) -> int:
        """Lines in which a pattern fits."""
        flags = re.IGNORECASE if ignore_case else 0
        fits = re.compile(pattern, flags).search
        self._plain = PlainText.of(pattern, ignore_case=ignore_case)
        if stays_in_line(pattern):
            self._whole = re.compile(pattern, flags | re.MULTILINE).search
        paths = self._fitting(names)
        self._results = self._matches(fits, paths, context)
        return len(paths)

    def _do_rank(self, words: list[str], names: str) -> int:
        """Files by words in their names and lines."""
        paths = self._fitting(names)
        ranking = WordRanking(words)
        self._whole = ranking.search
        self._results = self._ranked(ranking, paths)
        return len(paths)

    def _more(self, count: int) -> Message:
        """The next results."""
        items = list(islice(self._results, count))
        return {
            "items": items,
            "is_last": len(items) < count,
            "unreadable": self._tree.unreadable,
            "large": self._large,
            "truncated": self._tree.truncated,
        }

    def _fitting(self, names: str) -> list[str]:
        fits = re.compile(names, re.DOTALL).fullmatch
        return [each.path for each in self._tree.files if not each.is_link and fits(each.path)]

    def _matches(self, fits: Search, paths: list[str], context: int) -> Iterator[Message]:
        """The matches of each file."""
        for path in paths:
            lines = self._lines(path) or []
            for at, line in enumerate(lines):
                if match := fits(line):
                    yield {
                        "path": path,
                        "line": at + 1,
                        "text": cut(line, *match.span()),
                        "before": [cut(each, 0, 0) for each in lines[max(at - context, 0) : at]],
                        "after": [cut(each, 0, 0) for each in lines[at + 1 : at + 1 + context]],
                    }

    def _ranked(self, ranking: WordRanking, paths: list[str]) -> Iterator[Message]:
        """The files that fit, the best first."""
        for path in paths:
            ranking.see(path, self._lines(path) or ())
        yield from map(asdict, ranking.best(len(paths)))

    def _lines(self, path: str) -> list[str] | None:
        """The lines of a file; None where nothing is in them, and where it cannot be read."""
        try:
            data = self._data(path)
        except FileNotFoundError:
            return None
        except OSError:
            self._tree.unreadable.append(path)
            return None
        if self._plain and data[:2] not in WIDE_MARKS and not self._plain.is_in(data):
            return None
        text = text_of(data)
        if text is None or (self._whole and "\r" not in text and not self._whole(text)):
            return None
        return lines_of(text)

    def _data(self, path: str) -> bytes:
        """What is in a file; nothing where it is too large or closed to reads."""
        fd, status = self._files.open(path)
        try:
            is_closed = (status.st_dev, status.st_ino) in self._closed
            if is_closed or not self._note_size(path, status.st_size):
                return b""
            return _up_to(fd, status.st_size, MAX_FILE_BYTES)
        finally:
            os.close(fd)

    def _note_size(self, path: str, size: int) -> bool:
        """Whether a file may be read; one that is too large is told."""
        if size <= MAX_FILE_BYTES:
            return True
        self._large.append(path)
        return False

    def _forget(self) -> None:
        self._files.close()
        self._files = _SingleFile(-1)
        for fd in self._fds:
            os.close(fd)
        self._fds = []
        self._tree = Tree()
        self._large = []
        self._plain = None
        self._whole = None
        self._results = iter(())


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
        import resource  # not on Windows

        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # deep trees
        if sys.platform != "darwin":  # which cannot limit address space
            resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
