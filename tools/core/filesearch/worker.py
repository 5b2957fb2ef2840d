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

from tools.core.filesearch.content import MAX_FILE_BYTES, cut, text_lines
from tools.core.filesearch.opening import Ladder
from tools.core.filesearch.ranking import WordRanking
from tools.core.filesearch.tree import File, Tree, Walk

__all__ = ["main"]

Message = dict[str, Any]

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
        self._results: Iterator[Message] = iter(())

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
        candidates: list[str] | None,
        context: int,
        *,
        ignore_case: bool,
    ) -> Message:
        """Lines in which a pattern fits."""
        fits = re.compile(pattern, re.IGNORECASE if ignore_case else 0).search
        files = self._fitting(names)
        self._results = self._matches(fits, _among(files, candidates), context)
        return self._told(files)

    def _do_rank(self, words: list[str], names: str, candidates: list[str] | None) -> Message:
        """Files by words in their names and lines."""
        files = self._fitting(names)
        worth = None if candidates is None else set(candidates)
        ranking = WordRanking(words)
        for file in files:
            is_read = worth is None or file.path in worth
            ranking.see(file.path, (self._lines(file) or ()) if is_read else ())
        self._results = map(asdict, ranking.best(len(files)))
        return self._told(files)

    def _do_more(self, count: int) -> Message:
        """The next results."""
        items = list(islice(self._results, count))
        return {"items": items, "is_last": len(items) < count, "unreadable": self._tree.unreadable}

    def _fitting(self, names: str) -> list[File]:
        fits = re.compile(names, re.DOTALL).fullmatch
        return [each for each in self._tree.files if not each.is_link and fits(each.path)]

    def _told(self, files: list[File]) -> Message:
        large = [file.path for file in files if file.size > MAX_FILE_BYTES]
        return {"files": len(files), "large": large}

    def _matches(
        self,
        fits: Callable[[str], re.Match[str] | None],
        files: list[File],
        context: int,
    ) -> Iterator[Message]:
        for file in files:
            lines = self._lines(file)
            for at, line in enumerate(lines or ()):
                match = fits(line)
                if match and lines:
                    yield {
                        "path": file.path,
                        "line": at + 1,
                        "text": cut(line, *match.span()),
                        "before": [cut(each, 0, 0) for each in lines[max(at - context, 0) : at]],
                        "after": [cut(each, 0, 0) for each in lines[at + 1 : at + 1 + context]],
                    }

    def _lines(self, file: File) -> list[str] | None:
        """The lines of a file; None where it is binary, too large, gone, or cannot be read."""
        if file.size > MAX_FILE_BYTES:
            return None
        try:
            with os.fdopen(self._read(file.path), "rb", buffering=0) as opened:
                status = os.fstat(opened.fileno())
                if (status.st_dev, status.st_ino) in self._closed:
                    return None
                data = _up_to(opened.fileno(), MAX_FILE_BYTES)
        except FileNotFoundError:
            return None
        except OSError:
            self._tree.unreadable.append(file.path)
            return None
        return text_lines(data)

    def _forget(self) -> None:
        self._close()
        self._close = lambda: None
        for fd in self._fds:
            os.close(fd)
        self._fds = []
        self._tree = Tree()
        self._results = iter(())


def _among(files: list[File], candidates: list[str] | None) -> list[File]:
    """The files that are worth reading."""
    if candidates is None:
        return files
    worth = set(candidates)
    return [file for file in files if file.path in worth]


def _nothing_open(path: str) -> int:
    raise FileNotFoundError(path)


def _up_to(fd: int, count: int) -> bytes:
    """The first bytes of a file, which may grow meanwhile."""
    size = os.fstat(fd).st_size
    data = os.read(fd, min(size + 1, count))
    if len(data) < size:
        chunks = [data]
        while (left := count - sum(map(len, chunks))) > 0 and (chunk := os.read(fd, left)):
            chunks.append(chunk)
        data = b"".join(chunks)
    return data


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
