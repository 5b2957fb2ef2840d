"""Path patterns: those of `.gitignore`, plus `{a,b}`."""

from __future__ import annotations

import re

from tools.core.errors import InvalidArgumentsError
from tools.sandbox.search.gitignore import translate

MAX_ALTERNATIVES = 256
"""Limit on the patterns that braces expand to."""

MAX_CHARACTERS = 16_384
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
        if length > MAX_CHARACTERS:
            raise ValueError(f"its braces expand to more than {MAX_CHARACTERS} characters")
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
