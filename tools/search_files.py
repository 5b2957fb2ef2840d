"""Searches the files inside the root: by name, by regular expression or by plain words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Annotated, Any, Literal

import anyio.to_thread
from pydantic import Field

from storage.models import utc
from tools.answers.file_matches import (
    FileCount,
    FileMatches,
    FilePaths,
    FoundLine,
    FoundPath,
    LineMatch,
    RankedFile,
    RankedFiles,
)
from tools.core.context import RequestContext
from tools.core.errors import InvalidArgumentsError
from tools.core.spec import Alias, Effect, Subject, SubjectKind, ToolScope, tool
from tools.sandbox.files.text_files import unicode_name

if TYPE_CHECKING:
    from tools.sandbox.search.search import Found, Scope

OutputMode = Literal["content", "files_with_matches", "count"]

FILE_TYPES = {
    "c": "*.{c,h}",
    "cpp": "*.{cc,cpp,cxx,h,hh,hpp}",
    "css": "*.{css,scss}",
    "go": "*.go",
    "html": "*.{htm,html}",
    "java": "*.java",
    "js": "*.{cjs,js,jsx,mjs,vue}",
    "json": "*.json",
    "md": "*.{md,markdown}",
    "py": "*.{py,pyi}",
    "rust": "*.rs",
    "ts": "*.{cts,mts,ts,tsx}",
    "yaml": "*.{yaml,yml}",
}
"""The file names of ripgrep's types that models use most."""


def _names_of_type(given: Mapping[str, Any]) -> str:
    if given["type"] not in FILE_TYPES:
        raise ValueError
    return FILE_TYPES[given["type"]]


def _mode_of_names(given: Mapping[str, Any]) -> OutputMode:
    return "files_with_matches" if given["names_only"] else "content"


def _opposite(name: str, given: Mapping[str, Any]) -> bool:
    if not isinstance(given[name], bool):
        raise TypeError
    return not given[name]


Pattern = Annotated[str, Field(min_length=1, max_length=1000)]
SearchPath = Annotated[
    str,
    Field(description="Directory or file, relative to the root, or absolute within it"),
    Alias("dir_path"),
]
FilePattern = Annotated[
    str,
    Field(max_length=1000, description="Only such files: *.py, src/**, *.{ts,tsx}"),
    Alias("glob", "include", "include_pattern"),
    Alias("type", read=_names_of_type),
]
IncludeIgnored = Annotated[
    bool,
    Field(description="Also what .gitignore leaves out"),
    Alias("no_ignore"),
    Alias("respect_git_ignore", read=partial(_opposite, "respect_git_ignore")),
]

MOST_COUNTED = 10_000  # limit on the lines that are counted by file
MAX_WORDS = 16  # limit on the words of a query
PATH = Subject(SubjectKind.PATH, "path")


@tool(
    scope=ToolScope.SANDBOXED,
    effects={Effect.READ},
    idempotent=True,
    tags=("files",),
    capabilities=("find files by a pattern of their names", "list files of one kind"),
    subject=PATH,
)
async def glob(
    context: RequestContext,
    pattern: Annotated[Pattern, Field(description="**/*.py, *.{ts,tsx}, src/**/test_?.py")],
    path: SearchPath = ".",
    max_results: Annotated[int, Field(ge=1, le=1000, description="Files at most")] = 100,
    include_ignored: IncludeIgnored = False,
) -> FilePaths:
    """Finds files by a pattern of their paths, the newest first.

    Without a slash it fits names at any depth, else paths relative to `path`.
    """
    scope = _scope(path, pattern, include_ignored=include_ignored)
    found = await (await context.file_search()).glob(context.sandbox, scope, limit=max_results)
    return await anyio.to_thread.run_sync(_paths, found)  # slow for a thousand files


@tool(
    scope=ToolScope.SANDBOXED,
    effects={Effect.READ},
    idempotent=True,
    tags=("files",),
    capabilities=("search the content of files by a regular expression", "find lines in files"),
    aliases_elsewhere=("search_file_content", "grep_search", "grep_files"),
    ignored=("-n",),  # lines are always shown with their numbers
    subject=PATH,
)
async def grep(
    context: RequestContext,
    pattern: Annotated[Pattern, Field(description="Regular expression, as in Python; by line")],
    path: SearchPath = ".",
    file_pattern: FilePattern = "",
    case_sensitive: Annotated[
        bool, Field(description="Whether case matters"), Alias("-i", read=partial(_opposite, "-i"))
    ] = True,
    context_lines: Annotated[
        int,
        Field(ge=0, le=20, description="Lines shown around each"),
        Alias(
            "-C",
            "-A",
            "-B",
            "context",
            "after",
            "before",
            read=lambda given: max(map(int, given.values())),
        ),
    ] = 0,
    max_results: Annotated[
        int,
        Field(ge=1, le=1000, description="Lines at most"),
        Alias("head_limit", "total_max_matches"),
    ] = 100,
    include_ignored: IncludeIgnored = False,
    output_mode: Annotated[
        OutputMode,
        Field(description="content: the lines; else only the files and how many lines each has"),
        Alias("names_only", read=_mode_of_names),
    ] = "content",
) -> FileMatches:
    """Finds the lines of files in which a regular expression fits."""
    names_files = output_mode != "content"
    found = await (await context.file_search()).grep(
        context.sandbox,
        pattern,
        _scope(path, file_pattern, include_ignored=include_ignored),
        ignore_case=not case_sensitive,
        context=0 if names_files else context_lines,
        limit=MOST_COUNTED if names_files else max_results,
    )
    if names_files:
        counts = Counter(unicode_name(item["path"]) for item in found.items)
        common = _common(found)
        common["truncated"] |= len(counts) > max_results
        files = [FileCount(path=path, count=count) for path, count in counts.items()]
        return FileMatches(
            matches=[], files=files[:max_results], files_searched=found.files, **common
        )
    matches = [LineMatch(**item | {"path": unicode_name(item["path"])}) for item in found.items]
    return FileMatches(matches=matches, files_searched=found.files, **_common(found))


@tool(
    scope=ToolScope.SANDBOXED,
    effects={Effect.READ},
    idempotent=True,
    tags=("files",),
    capabilities=("find files by words in their names or content", "where is something in files"),
    subject=PATH,
)
async def search_files(
    context: RequestContext,
    query: Annotated[str, Field(min_length=1, max_length=1000, description="Plain words")],
    path: SearchPath = ".",
    file_pattern: FilePattern = "",
    max_results: Annotated[int, Field(ge=1, le=100, description="Files at most")] = 10,
    include_ignored: IncludeIgnored = False,
) -> RankedFiles:
    """Finds files by plain words in their names and lines, the best first."""
    words = await anyio.to_thread.run_sync(_words_of, query)  # loads the stemmers on first use
    if not words:
        raise InvalidArgumentsError(
            f"The query {query!r} has no word in it.",
            next_actions=["Give words, or search for signs with grep."],
        )
    found = await (await context.file_search()).rank(
        context.sandbox,
        list(words),
        _scope(path, file_pattern, include_ignored=include_ignored),
        limit=max_results,
    )
    files = [_rank(item, list(words.values())) for item in found.items]
    return RankedFiles(files=files, files_searched=found.files, **_common(found))


def _words_of(query: str) -> dict[str, str]:
    """Maps the common prefix of each query word's forms to the word as written.

    The words are those of `storage.tokenize`: stop words are dropped unless there are no others,
    and identifiers are split. A prefix stands for every word that begins with it, so that
    `policies` also finds `policy`.
    """
    from storage.tokenize import terms_of

    found: dict[str, str] = {}
    for term, written in terms_of(query).items():
        found.setdefault(_beginning(written.lower(), term), written)
    if not found:
        found = {word.lower(): word for word in query.split() if any(map(str.isalnum, word))}
    return dict(list(found.items())[:MAX_WORDS])


def _beginning(word: str, term: str) -> str:
    """Returns the common prefix of a word and its stem; the whole word unless ASCII letters."""
    if not (word.isascii() and word.isalnum()):
        return word
    pairs = zip(word, term.removesuffix("i"), strict=False)
    return word[: sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))] or word


def _scope(path: str, names: str, *, include_ignored: bool) -> Scope:
    from tools.sandbox.search.search import Scope

    return Scope(path=path, names=names, include_ignored=include_ignored)


def _paths(found: Found) -> FilePaths:
    files = [
        FoundPath(**item | {"path": unicode_name(item["path"]), "modified": utc(item["mtime"])})
        for item in found.items
    ]
    return FilePaths(files=files, **_common(found))


def _common(found: Found) -> dict[str, Any]:
    return {
        "truncated": found.truncated,
        "unreadable": list(map(unicode_name, found.unreadable)),
        "too_large": list(map(unicode_name, found.large)),
    }


def _rank(item: dict[str, Any], words: list[str]) -> RankedFile:
    in_name = [words[at] for at in item["in_name"]]
    in_directories = [words[at] for at in item["in_directories"]]
    in_lines = [
        f"{word} x{count}" for word, count in zip(words, item["counts"], strict=True) if count
    ]
    reasons = {"name": in_name, "directories": in_directories, "lines": in_lines}
    return RankedFile(
        path=unicode_name(item["path"]),
        score=item["score"],
        why="; ".join(f"{where}: {', '.join(what)}" for where, what in reasons.items() if what),
        lines=[FoundLine(line=line, text=text) for line, text in item["lines"]],
    )
