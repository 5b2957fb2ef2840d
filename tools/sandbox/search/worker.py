"""The worker process: walks, reads and matches, so that a pattern never blocks the server.

It receives open directories through its socket, reads one JSON object per line and answers each
with one. A pattern that backtracks forever is killed from outside; if the server is gone, an alarm
does
it.
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

from tools.sandbox.files.openat import open_below, open_file, read_up_to
from tools.sandbox.search.content import (
    MAX_FILE_BYTES,
    WIDE_MARKS,
    PlainText,
    WordRanking,
    cut,
    lines_of,
    stays_in_line,
    text_of,
)
from tools.sandbox.search.tree import File, Tree, Walk

Message = dict[str, Any]
Search = Callable[[str], re.Match[str] | None]

MAX_MEMORY = 2 << 30  # limit on the address space, which fits the largest file as text and as lines
CHUNK = 1 << 16


def main() -> None:
    """Serves the socket on standard input."""
    _set_limits()
    search = _Search([])
    with socket.socket(fileno=0) as channel:
        for message, fds in _messages(channel):
            signal.alarm(message.pop("seconds"))
            if fds:
                search.close()
                search = _Search(fds)
            try:
                answer = search.take(message)
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


class _Search:
    """One search, with its remaining results.

    `fds` are the root and the directory to search, or a single open file; closed with the search.
    """

    def __init__(self, fds: list[int]) -> None:
        self._fds = fds
        self._above = ""
        """Path of the directory of the last descriptor."""
        self._closed: frozenset[tuple[int, int]] = frozenset()
        self._tree = Tree()
        self._large: list[str] = []
        self._plain: PlainText | None = None
        self._whole: Search | None = None
        self._results: Iterator[Message] = iter(())

    def take(self, message: Message) -> Message:
        """Executes a message, and returns the first or the next results."""
        do, count = message.pop("do"), message.pop("count")
        if do == "more":
            return self._more(count)
        self._find_files(**message.pop("place"), detailed=do == "glob")
        searches: dict[str, Callable[..., int]]
        searches = {"glob": self._glob, "grep": self._grep, "rank": self._rank}
        return {"files": searches[do](**message)} | self._more(count)

    def close(self) -> None:
        for fd in self._fds:
            os.close(fd)

    def _find_files(
        self,
        prefix: str,
        name: str,
        closed: list[tuple[int, int]],
        *,
        include_ignored: bool,
        detailed: bool,
    ) -> None:
        """Uses a single open file as the only result, or walks a directory."""
        if name:
            status = os.fstat(self._fds[0])
            file = File(name, is_link=False, size=status.st_size, mtime=status.st_mtime)
            self._tree = Tree([file])
            return
        root, start = self._fds
        self._closed = frozenset((device, inode) for device, inode in closed)
        self._tree = Walk(
            root,
            start,
            prefix,
            closed=self._closed,
            include_ignored=include_ignored,
            detailed=detailed,
        ).run()
        self._fds.append(os.dup(start))

    def _glob(self, names: str) -> int:
        fits = re.compile(names, re.DOTALL).fullmatch
        found = [file for file in self._tree.files if fits(file.path)]
        found.sort(key=lambda file: (-file.mtime, file.path))
        self._results = (file._asdict() for file in found)
        return len(found)

    def _grep(self, pattern: str, names: str, context: int, *, ignore_case: bool) -> int:
        flags = re.IGNORECASE if ignore_case else 0
        fits = re.compile(pattern, flags).search
        self._plain = PlainText.of(pattern, ignore_case=ignore_case)
        if stays_in_line(pattern):
            self._whole = re.compile(pattern, flags | re.MULTILINE).search
        paths = self._fitting(names)
        self._results = self._matches(fits, paths, context)
        return len(paths)

    def _rank(self, words: list[str], names: str) -> int:
        paths = self._fitting(names)
        ranking = WordRanking(words)
        self._whole = ranking.search
        for path in paths:
            ranking.see(path, self._lines(path) or ())
        self._results = map(asdict, ranking.best(len(paths)))
        return len(paths)

    def _more(self, count: int) -> Message:
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

    def _lines(self, path: str) -> list[str] | None:
        """Returns the lines of a file; None if it cannot match or be read."""
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
        """Returns the content of a file; empty if it is too large or closed to reads."""
        fd, status = self._open(path)
        try:
            if (status.st_dev, status.st_ino) in self._closed:
                return b""
            if status.st_size > MAX_FILE_BYTES:
                self._large.append(path)
                return b""
            return read_up_to(fd, MAX_FILE_BYTES, status.st_size)
        finally:
            os.close(fd)

    def _open(self, path: str) -> tuple[int, os.stat_result]:
        """Opens a file, keeping its directory open, as the next file is often there too."""
        if len(self._fds) == 1:
            return os.dup(self._fds[0]), os.fstat(self._fds[0])
        above, _, name = path.rpartition("/")
        if above != self._above:
            directory = open_below(self._fds[1], above.split("/") if above else ())
            os.close(self._fds.pop())
            self._fds.append(directory)
            self._above = above
        return open_file(name, self._fds[-1])


def _messages(channel: socket.socket) -> Iterator[tuple[Message, list[int]]]:
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


def _set_limits() -> None:
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource  # not on Windows

        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # deep trees
        if sys.platform != "darwin":  # macOS cannot limit address space
            resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
