"""One line of a `.gitignore` file as a rule.

Follows https://git-scm.com/docs/gitignore and, where that is silent, git's wildmatch. A rule here
names exactly the paths that it names in git; libraries that also match what lies below them take a
later `!lib/` for a word on `lib/build/`, which it is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Rule", "read_rule"]

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
    """What one line says.

    Attributes:
        ignores: Whether what it names is left out, or (`!`) kept after all.
        directories_only: Whether it names directories only.
        anchored: Whether it names a path from its file's directory on, or a name at any depth.
        pattern: What it names.
    """

    ignores: bool
    directories_only: bool
    anchored: bool
    pattern: re.Pattern[str]

    def names(self, path: str, *, is_directory: bool) -> bool:
        """Whether the rule names this path, relative to its file's directory."""
        if self.directories_only and not is_directory:
            return False
        return bool(self.pattern.fullmatch(path if self.anchored else path.rpartition("/")[2]))


def read_rule(line: str) -> Rule | None:
    """Reads a line; None if it is blank, a remark, or malformed, which git passes over too."""
    line = _ESCAPED_SPACES.sub(r"\1", line)
    if not line or line.startswith("#") or len(line) > _MOST_CHARS:
        return None
    ignores = not line.startswith("!")
    glob = line.removeprefix("!")
    directories_only = glob.endswith("/")
    glob = glob.removesuffix("/")
    anchored = "/" in glob
    try:
        pattern = re.compile("".join(_translated(glob.removeprefix("/"))), re.DOTALL)
    except (re.error, ValueError):
        return None
    return Rule(ignores, directories_only, anchored, pattern) if glob else None


def _translated(glob: str) -> Iterator[str]:
    """The parts of the regular expression.

    Raises:
        ValueError: If a bracket is not closed or the last backslash escapes nothing.
    """
    for token in _TOKEN.finditer(glob):
        match token.lastgroup:
            case "anywhere":
                yield "(?:.*/)?"
            case "inside":
                yield ".+"
            case "stars":
                yield "[^/]*"
            case "one":
                yield "[^/]"
            case "members":
                yield f"(?!/)[{'^' if token['negated'] else ''}{_members(token['members'])}]"
            case "escaped":
                yield re.escape(token["escaped"])
            case _ if token["plain"] in {"[", "\\"}:
                raise ValueError(f"{glob!r} is malformed")
            case _:
                yield re.escape(token["plain"])


def _members(members: str) -> str:
    """The inside of a bracket, as regular expressions write it."""
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
