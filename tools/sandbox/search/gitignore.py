"""Parses `.gitignore` files and their pattern language.

Follows https://git-scm.com/docs/gitignore and, for what that leaves open, git's wildmatch. A rule
matches exactly the paths that it matches in git. Libraries that also match paths below them wrongly
apply a later `!lib/` to `lib/build/`. As in git, a character is a byte: names and rules are
compared in the form of `byte_text`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from tools.sandbox.files.openat import open_below, open_file

MAX_FILE_BYTES = 1_000_000  # limit on the bytes read of a rule file
_MOST_CHARS = 1000
_ESCAPED_SPACES = re.compile(r"(?<!\\)((?:\\\\)*) +$")
_TOKEN = re.compile(
    r"(?P<anywhere>(?:(?<=/)|^)\*{2,}/)"
    r"|(?P<inside>(?:(?<=/)|^)\*{2,}$)"
    r"|(?P<stars>\*+)"
    r"|(?P<one>\?)"
    r"|\[(?P<negated>[!^]?)(?P<members>\]?(?:\[:\w*:\]|\\.|[^\]\\])*)\]"
    r"|\\(?P<escaped>.)"
    r"|(?P<plain>.)",
    re.DOTALL,
)
_MEMBER = re.compile(r"\[:(?P<kind>\w*):\]|(?P<first>\\.|.)(?:-(?P<last>\\.|[^\]]))?", re.DOTALL)
_KINDS = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": " \\t",
    "digit": "0-9",
    "lower": "a-z",
    "punct": "!-.:-@[-`{-~",
    "space": "\\s",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}


@dataclass(frozen=True, slots=True)
class Rule:
    """A line of a rule file."""

    ignores: bool  # whether matching paths are ignored, or (`!`) kept after all
    directories_only: bool  # whether it matches only directories
    anchored: bool  # whether it matches paths, or names at any depth
    pattern: re.Pattern[str]

    def names(self, path: str, *, is_directory: bool) -> bool:
        """Returns whether it matches a path: bytes as text, relative to its file's directory."""
        if self.directories_only and not is_directory:
            return False
        return bool(self.pattern.fullmatch(path if self.anchored else path.rpartition("/")[2]))


class IgnoreRules:
    """The rules that apply in a directory: its own, and those above it in its repository.

    `levels` are the rules of each directory that has some, deepest first.
    """

    def __init__(self, levels: tuple[_Level, ...] = ()) -> None:
        self._levels = levels

    def below(self, directory: int, path: str, names: Collection[str]) -> IgnoreRules:
        """Returns the rules for a subdirectory.

        `path` ends with a slash unless it is empty.
        """
        levels = self._levels
        if ".git" in names:  # another repository: the rules above it do not apply
            levels = _level(directory, path, ".git", "info", "exclude")
        if ".gitignore" in names:
            levels = (*_level(directory, path, ".gitignore"), *levels)
        return IgnoreRules(levels)

    def match(self, path: str, *, is_directory: bool) -> bool:
        """Returns whether an entry of the directory, given by its path, is ignored."""
        if not self._levels:
            return False
        path = byte_text(path)
        verdicts = (level.verdict(path, is_directory=is_directory) for level in self._levels)
        return next((each for each in verdicts if each is not None), False)


class _Level:
    """The rules of one directory.

    The rules are given last first.
    """

    def __init__(self, path: str, rules: Sequence[Rule]) -> None:
        self._prefix_length = len(byte_text(path))
        self._rules = rules
        # One expression for all rules: most entries match none of them.
        self._by_name = _any(rule for rule in rules if not rule.anchored)
        self._by_path = _any(rule for rule in rules if rule.anchored)

    def verdict(self, path: str, *, is_directory: bool) -> bool | None:
        """Returns whether the entry is ignored; None if no rule matches."""
        below = path[self._prefix_length :]
        name = path.rpartition("/")[2]
        if self._by_name.fullmatch(name) or self._by_path.fullmatch(below):
            for rule in self._rules:
                if rule.names(below, is_directory=is_directory):
                    return rule.ignores
        return None


def byte_text(name: str) -> str:
    """Converts a file name to a text with one character per byte."""
    return name if name.isascii() else os.fsencode(name).decode("latin-1")


def read_rules(data: bytes) -> list[Rule]:
    """Parses the rules of a file, last first: the first match decides."""
    text = data.removeprefix(b"\xef\xbb\xbf").decode("latin-1")
    lines = (line.removesuffix("\r") for line in text.split("\n"))
    return [rule for line in lines if (rule := read_rule(line))][::-1]


def read_rule(line: str) -> Rule | None:
    """Parses a line; None if it is blank, a comment, or malformed, which git skips too."""
    line = _ESCAPED_SPACES.sub(r"\1", line)
    if not line or line.startswith("#") or len(line) > _MOST_CHARS:
        return None
    ignores = not line.startswith("!")
    glob = line.removeprefix("!")
    directories_only = glob.endswith("/")
    glob = glob.removesuffix("/")
    anchored = "/" in glob
    try:
        pattern = re.compile(translate(glob.removeprefix("/")), re.DOTALL | re.ASCII)
    except (re.error, ValueError):
        return None
    return Rule(ignores, directories_only, anchored, pattern) if glob else None


def translate(glob: str) -> str:
    """Returns the regular expression of a pattern, for DOTALL and a full match.

    It never backtracks after a failure (`*` and `**` match lazily, in atomic groups), so no pattern
    can make it slow.

    Raises ValueError if a bracket is not closed, or the last backslash escapes nothing.
    """
    chunks = _chunks(glob)
    first, *others = [_with_stars(chunk) for chunk in chunks]
    if not others:
        return first
    *between, last = others
    return first + "".join(f"(?>(?:[^/]*/)*?{each})" for each in between) + f"(?:.*/)?{last}"


def _chunks(glob: str) -> list[list[str]]:
    """Splits a pattern at `**/`, and each part at `*`."""
    chunks = [[""]]
    for token in _TOKEN.finditer(glob):
        match token.lastgroup:
            case "anywhere":
                chunks.append([""])
            case "stars":
                chunks[-1].append("")
            case _:
                chunks[-1][-1] += _fixed(token)
    return chunks


def _with_stars(pieces: Sequence[str]) -> str:
    first, *others = pieces
    if not others:
        return first
    *between, last = others
    return first + "".join(f"(?>[^/]*?{each})" for each in between) + f"[^/]*{last}"


def _fixed(token: re.Match[str]) -> str:
    """Translates a part that matches one character, or (`/**` at the end) all the rest."""
    match token.lastgroup:
        case "inside":
            return ".+"
        case "one":
            return "[^/]"
        case "members":
            return f"(?!/)[{'^' if token['negated'] else ''}{_members(token['members'])}]"
        case "escaped":
            return re.escape(token["escaped"])
        case _ if token["plain"] in {"[", "\\"}:
            raise ValueError(f"{token.string!r} has an unclosed {token['plain']!r}")
        case _:
            return re.escape(token["plain"])


def _members(members: str) -> str:
    parts = []
    for member in _MEMBER.finditer(members):
        if member["kind"] is not None:
            parts.append(_KINDS.get(member["kind"], ""))
            continue
        first = member["first"][-1]
        last = (member["last"] or first)[-1]
        if first <= last:
            parts.append(f"{re.escape(first)}-{re.escape(last)}")
    return "".join(parts) or "^\\s\\S"


def _any(rules: Iterable[Rule]) -> re.Pattern[str]:
    alternatives = [f"(?:{rule.pattern.pattern})" for rule in rules]
    return re.compile("|".join(alternatives) or "(?!)", re.DOTALL | re.ASCII)


def _level(directory: int, path: str, *names: str) -> tuple[_Level, ...]:
    """Reads a rule file; empty if it is missing, a link, not a regular file, or unreadable."""
    *directories, name = names
    try:
        parent = open_below(directory, directories)
        try:
            fd, _ = open_file(name, parent)
        finally:
            os.close(parent)
        with os.fdopen(fd, "rb") as file:
            rules = read_rules(file.read(MAX_FILE_BYTES))
    except OSError:
        return ()
    return (_Level(path, rules),) if rules else ()
