"""The server's side of file search: reads patterns, opens the place, and queries a worker.

The worker walks, reads and matches; results are shown only after the sandbox has checked them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from posixpath import basename, dirname

import anyio
from anyio import to_thread

from tools.core.errors import DeadlineError, InternalError, InvalidArgumentsError, UnavailableError
from tools.sandbox.files.openat import Root, path_beneath
from tools.sandbox.files.sandbox import Sandbox
from tools.sandbox.files.sandbox_errors import explained
from tools.sandbox.search.gitignore import translate
from tools.sandbox.search.workers import Answer, Worker, WorkerEndedError, WorkerPool

DEADLINE = 20.0  # time limit of a search in seconds
SECONDS_OVER = 2  # seconds after the deadline when the worker exits, in case the server is gone
MAX_CHARACTERS = 200_000  # approximate limit on the characters of an answer
PAGE = 250  # results to fetch from the worker at once
MAX_NAMED = 20  # limit on the unreadable or too large files that are named


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The files to search."""

    path: str = "."  # a directory, or one file, relative to the root
    names: str = ""  # pattern of their paths, relative to that directory; empty for all
    include_ignored: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """The result of a search."""

    items: list[Answer]  # the results; `path` in each is relative to the root
    files: int  # number of files whose name matches
    truncated: bool
    unreadable: list[str]  # the first files and directories that could not be opened
    large: list[str]  # the first files too large to search


class FileSearch:
    """Searches the files of a sandbox, in a separate process.

    Every search raises InvalidArgumentsError for a malformed pattern, DeadlineError if it takes too
    long, UnavailableError if it needs too much memory, and the errors of Sandbox.
    """

    def __init__(self, *, deadline: float = DEADLINE) -> None:
        self._deadline = deadline
        self._workers = WorkerPool()

    async def glob(self, sandbox: Sandbox, scope: Scope, *, limit: int) -> Found:
        """Finds files and links by path, newest first."""
        return await self._run(sandbox, scope, limit, scope.names, {"do": "glob"})

    async def grep(
        self,
        sandbox: Sandbox,
        pattern: str,
        scope: Scope,
        *,
        ignore_case: bool = False,
        context: int = 0,
        limit: int,
    ) -> Found:
        """Finds the lines that match a pattern, ordered by file.

        The pattern, one of Python's `re`, is applied to each line without its end; `context` lines
        are shown before and after each match.
        """
        question = {
            "do": "grep",
            "pattern": pattern,
            "context": context,
            "ignore_case": ignore_case,
        }
        return await self._run(sandbox, scope, limit, pattern, question)

    async def rank(
        self, sandbox: Sandbox, words: Sequence[str], scope: Scope, *, limit: int
    ) -> Found:
        """Ranks files by plain words in their names and lines, best first."""
        question = {"do": "rank", "words": list(words)}
        return await self._run(sandbox, scope, limit, " ".join(words), question)

    async def aclose(self) -> None:
        """Ends the idle worker."""
        await self._workers.aclose()

    async def _run(
        self, sandbox: Sandbox, scope: Scope, limit: int, pattern: str, question: Answer
    ) -> Found:
        names = path_regex(scope.names or "**")
        place = await to_thread.run_sync(_open_place, sandbox, scope.path)
        try:
            async with self._workers.borrow() as worker:
                with anyio.move_on_after(self._deadline):
                    search = _Search(worker, place, limit, pattern, self._deadline)
                    return await search.run(
                        question | {"names": names}, include_ignored=scope.include_ignored
                    )
        finally:
            place.close()
        raise DeadlineError(
            f"The search for {pattern!r} did not finish within {self._deadline:g} seconds and was "
            "stopped.",
            next_actions=[
                "Give a smaller path or a file pattern.",
                "Give a simpler pattern: repetitions in repetitions, as (a+)+, may take for ever.",
            ],
        )


@dataclass(frozen=True, slots=True)
class _Place:
    sandbox: Sandbox
    path: str  # the path given by the caller
    fds: tuple[int, ...]  # descriptors of the root and of the directory, or of a single file
    prefix: str  # the directory, relative to the root and without links; "." for the root
    name: str = ""  # the name of the single file; empty for a directory

    def beneath_root(self, path: str) -> str:
        return path if self.prefix == "." else f"{self.prefix}/{path}"

    def visible(self, paths: set[str]) -> set[str]:
        """Returns the paths that are not hidden by protection or rules; blocks."""
        return {path for path in paths if not self.sandbox.hides(self.beneath_root(path))}

    def close(self) -> None:
        for fd in self.fds:
            os.close(fd)


@dataclass(frozen=True, slots=True)
class _Search:
    """One search, which fetches results from the worker page by page."""

    worker: Worker
    place: _Place
    limit: int
    pattern: str
    seconds: float

    async def run(self, question: Answer, *, include_ignored: bool) -> Found:
        where = {
            "prefix": self.place.prefix,
            "name": self.place.name,
            "closed": sorted(self.place.sandbox.closed()),
            "include_ignored": include_ignored,
        }
        # One additional result shows that there are more.
        count = min(PAGE, self.limit + 1)
        page = await self._ask(question | {"place": where, "count": count}, self.place.fds)
        files: int = page["files"]
        items: list[Answer] = []
        characters = 0
        while True:
            for item in await self._visible(page["items"]):
                characters += _characters(item)
                if characters <= MAX_CHARACTERS or not items:
                    items.append(item)
            is_cut = len(items) > self.limit or characters > MAX_CHARACTERS
            if is_cut or page["is_last"]:
                break
            page = await self._ask({"do": "more", "count": min(PAGE, self.limit - len(items) + 1)})
        return Found(
            items[: self.limit],
            files,
            is_cut or page["truncated"],
            await self._visible_names(page["unreadable"]),
            await self._visible_names(page["large"]),
        )

    async def _ask(self, question: Answer, fds: tuple[int, ...] = ()) -> Answer:
        alarm = {"seconds": round(self.seconds) + SECONDS_OVER}
        try:
            answer = await self.worker.ask(question | alarm, fds)
        except WorkerEndedError as error:
            raise InternalError(
                "The process that searches among files ended.",
                next_actions=["Search again, in a smaller path or with a simpler pattern."],
            ) from error
        match answer:
            case {"errno": code}:
                with explained(self.place.path, self.place.sandbox.root):
                    raise OSError(code, os.strerror(code))
            case {"exhausted": True}:
                raise UnavailableError(
                    "The search needs more memory than its process may have.",
                    next_actions=["Give a smaller path or a file pattern."],
                )
            case {"malformed": why, "position": position}:
                where = "" if position is None else f" at position {position}"
                raise InvalidArgumentsError(
                    f"The pattern {self.pattern!r} is not a regular expression: {why}{where}.",
                    next_actions=[
                        "Put a backslash before what is meant as it is: \\( \\[ \\{ \\*."
                    ],
                )
        return answer

    async def _visible(self, items: list[Answer]) -> list[Answer]:
        paths = {item["path"] for item in items}
        visible = await to_thread.run_sync(self.place.visible, paths) if paths else paths
        beneath = self.place.beneath_root
        return [item | {"path": beneath(item["path"])} for item in items if item["path"] in visible]

    async def _visible_names(self, paths: list[str]) -> list[str]:
        found = await self._visible([{"path": path} for path in paths[:MAX_NAMED]])
        return [each["path"] for each in found]


def _open_place(sandbox: Sandbox, path: str) -> _Place:
    """Opens a directory or file to search; raises the errors of Sandbox."""
    fds = [sandbox.open_directory()]
    try:
        try:
            fds.append(sandbox.open_directory(path))
        except InvalidArgumentsError:  # not a directory
            return _open_one(sandbox, path)
        prefix = _real_path(sandbox, path, *fds)
        return _Place(sandbox, path, (fds.pop(0), fds.pop()), prefix)
    finally:
        for fd in fds:
            os.close(fd)


def _open_one(sandbox: Sandbox, path: str) -> _Place:
    with sandbox.open_read(path) as file:
        spelled = sandbox.relative(path)
        fds = (os.dup(file.fileno()),)
    return _Place(sandbox, path, fds, dirname(spelled) or ".", basename(spelled))


def _real_path(sandbox: Sandbox, path: str, root: int, start: int) -> str:
    try:
        return path_beneath(Root(root, ()), start)
    except OSError:
        return sandbox.relative(path)  # if the system cannot report it


def _characters(item: Answer) -> int:
    return sum(
        len(value) if isinstance(value, str) else sum(len(str(each)) for each in value)
        for value in item.values()
        if isinstance(value, (str, list))
    )


MAX_ALTERNATIVES = 256  # limit on the patterns that braces expand to
MAX_PATTERN_CHARACTERS = 16_384
"""Limit on their combined length: they are parsed while the server waits."""

_BRACE = re.compile(r"\\.|\[[!^]?\]?[^\]]*\]|(?P<mark>[{},])", re.DOTALL)


def path_regex(pattern: str) -> str:
    """Converts a pattern of relative paths to a regular expression, for DOTALL and a full match.

    A pattern without a slash matches files at any depth. `*` and `?` stop at a slash, `**` between
    slashes matches any number of directories, `[a-z]` and `[!a-z]` match one character, `{a,b}`
    matches either, and a trailing slash matches everything inside. A leading dot is not special.
    """
    if pattern.startswith("/") or ".." in pattern.split("/"):
        raise InvalidArgumentsError(
            f"The pattern {pattern!r} leads elsewhere; patterns are relative to `path`.",
            next_actions=["Give the directory in `path` and the rest as pattern: **/*.py."],
        )
    try:
        return "|".join(_one(each) for each in alternatives(pattern))
    except ValueError as error:
        raise InvalidArgumentsError(
            f"The pattern {pattern!r} is malformed: {error}.",
            next_actions=["Close the bracket or brace, or put a backslash before it."],
        ) from None


def _one(pattern: str) -> str:
    bare = pattern.removeprefix("./")
    if bare.endswith("/"):
        bare += "**"
    anywhere = "" if "/" in pattern else "**/"
    return translate(anywhere + bare)


def alternatives(pattern: str) -> list[str]:
    """Expands the braces of a pattern.

    Raises ValueError if a brace is not closed, or there are too many alternatives.
    """
    done: list[str] = []
    waiting = [pattern]
    length = 0
    while waiting:
        each = waiting.pop()
        split = _first_braces(each)
        if split is None:
            done.append(each)
            length += len(each)
        else:
            before, inner, after = split
            waiting.extend(before + one + after for one in reversed(inner))
        if len(done) + len(waiting) > MAX_ALTERNATIVES:
            raise ValueError(f"its braces expand to more than {MAX_ALTERNATIVES} patterns")
        if length > MAX_PATTERN_CHARACTERS:
            raise ValueError(f"its braces expand to more than {MAX_PATTERN_CHARACTERS} characters")
    return done


def _first_braces(pattern: str) -> tuple[str, list[str], str] | None:
    """Returns the parts before, in and after the first braces; None if there are none."""
    depth = start = opened = 0
    inner: list[str] = []
    for token in _BRACE.finditer(pattern):
        mark, at = token["mark"], token.start()
        if mark == "{":
            depth += 1
            if depth == 1:
                opened, start = at, at + 1
        elif depth == 1 and mark:
            inner.append(pattern[start:at])
            start = at + 1
            if mark == "}":
                return pattern[:opened], inner, pattern[start:]
        elif mark == "}":
            depth = max(depth - 1, 0)
    if depth:
        raise ValueError("it has an unclosed '{'")
    return None
