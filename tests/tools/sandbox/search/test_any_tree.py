"""The search finds what is in each file, whatever is in the tree and in the pattern."""

import codecs
import itertools
import os
import re
import subprocess
import warnings
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tools.sandbox.search.content import lines_of, text_of
from tools.sandbox.search.search import Scope

WORDS = st.sampled_from(
    [
        *("needle", "Needle", "NEEDLE", "nee", "dle", "é", "É", "K", "\u017f", "İ", "\t", "  "),
        *("搜索", "x" * 500),
    ]
)
LINES = st.lists(WORDS, max_size=4).map("".join)
ENDS = st.sampled_from(["\n", "\r\n", "\r"])
ENCODINGS = st.sampled_from(
    [
        ("utf-8", b""),
        ("utf-8", codecs.BOM_UTF8),
        ("latin-1", b""),
        ("utf-16-le", codecs.BOM_UTF16_LE),
        ("utf-16-be", codecs.BOM_UTF16_BE),
        ("utf-16-le", b""),
        ("utf-32-le", codecs.BOM_UTF32_LE),
    ]
)


def _encoded(lines: list[str], end: str, encoding: tuple[str, bytes], tail: bytes) -> bytes:
    name, mark = encoding
    return mark + end.join(lines).encode(name, "replace") + tail


TAILS = st.sampled_from(
    [b"", b"\n", b"\0", b"\xff", b"\xd8", b"\xc3", b"needle\0needle", b"\xed\xa0"]
)
CONTENTS = st.one_of(
    st.builds(_encoded, st.lists(LINES, max_size=6), ENDS, ENCODINGS, TAILS), st.binary(max_size=60)
)
PARTS = st.sampled_from(
    [
        *("a", "b", "src", ".hidden", "node_modules", "a b", "-e", "--", "[x]", "{y}", "*"),
        *("!z", "\n", "é", os.fsdecode(b"\xff\xfe")),
    ]
)
PATHS = st.lists(PARTS, min_size=1, max_size=3)
RULES = st.lists(
    st.sampled_from(
        ["src", "/a/", "*.txt", "!a", "node_modules/", "a/**", "**/b", "!*", "[[]x]", "é"]
    ),
    max_size=3,
)
TREES = st.fixed_dictionaries(
    {
        "files": st.lists(st.tuples(PATHS, CONTENTS), min_size=1, max_size=8),
        "rules": st.lists(st.tuples(PATHS, RULES), max_size=2),
        "links": st.lists(st.tuples(PATHS, PARTS), max_size=2),
        "closed": st.lists(PATHS, max_size=1),
    }
)
PATTERNS = st.one_of(
    st.sampled_from(
        [
            *("needle", "need.e", "^needle$", r"\bNee", "(?i)needle", "(nee)dle|é", r"[^\w\s]"),
            *("k", "s", ".", "", r"(.)\1", "n(?=ee)", "(?<=é)n", "nee(?!d)", "x{100,}", r"\s$"),
            *(r"\S+\s\S+", "\0", "ÿ", "\ufffd", r"\x00", "[é-\u017f]", "搜.", r"\r"),
            *("dle(?:nee){2}", "(?>ne+)d", "ne++d"),
        ]
    ),
    st.text(alphabet="nedl.*+?|()[]^$\\wéK", min_size=1, max_size=8),
)


def grow(root: Path, tree: dict[str, Any]) -> None:
    """Makes a tree; what does not fit into it, such as a file where a directory is, is left out."""
    for parts, data in tree["files"]:
        with suppress(OSError):
            path = root.joinpath(*parts)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    for parts, rules in tree["rules"]:
        with suppress(OSError):
            root.joinpath(*parts[:-1], ".gitignore").write_text("\n".join(rules) + "\n")
    for parts, target in tree["links"]:
        with suppress(OSError):
            root.joinpath(*parts).symlink_to(target)
    for parts in tree["closed"]:
        with suppress(OSError):
            root.joinpath(*parts).chmod(0)


COUNTS = Counter[str]()
SCOPES = st.fixed_dictionaries(
    {
        "names": st.sampled_from(["", "", "*.txt", "a", "**/b/*", "src/", "{a,b}", "*"]),
        "include_ignored": st.booleans(),
    }
)


def one_by_one(searcher: Any, pattern: str, files: list[str], *, ignore_case: bool) -> Any:
    """What is in the lines of the files, each looked at alone."""
    fits = re.compile(pattern, re.IGNORECASE if ignore_case else 0).search
    for path in files:
        try:
            text = text_of((searcher.sandbox.root / path).read_bytes())
        except PermissionError:
            continue
        for number, line in enumerate(lines_of(text) if text is not None else (), 1):
            if fits(line):
                yield path, number


def check_same(searcher: Any, tree: Any, patterns: list[str], scope: dict[str, Any]) -> None:
    root = searcher.sandbox.root
    for entry in root.iterdir():
        if not entry.is_symlink():
            subprocess.run(["/bin/chmod", "-R", "u+rwx", "--", str(entry)], check=False)
        subprocess.run(["/bin/rm", "-rf", "--", str(entry)], check=True)
    grow(root, tree)
    listed = searcher.glob(Scope(**scope | {"names": scope.get("names") or "**"})).items
    files = sorted(each["path"] for each in listed if not each["is_link"])
    for pattern, ignore_case in itertools.product(filter(is_valid, patterns), (False, True)):
        found = searcher.grep(pattern, Scope(**scope), ignore_case=ignore_case).items
        expected = one_by_one(searcher, pattern, files, ignore_case=ignore_case)
        assert sorted((each["path"], each["line"]) for each in found) == sorted(expected)
        COUNTS["found" if found else "nothing found"] += 1


def is_valid(pattern: str) -> bool:
    try:
        with warnings.catch_warnings(action="error"):
            re.compile(pattern)
    except (re.error, Warning):
        return False
    return True


def search_wild_trees(searcher: Any, examples: int) -> None:
    COUNTS.clear()

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(tree=TREES, patterns=st.lists(PATTERNS, min_size=1, max_size=3), scope=SCOPES)
    def check(tree: Any, patterns: list[str], scope: dict[str, Any]) -> None:
        check_same(searcher, tree, [*patterns, "."], scope)  # "." finds something in most trees

    check()
    assert COUNTS["found"] > examples // 20


@pytest.mark.slow
@pytest.mark.parametrize("examples", [80, pytest.param(1000, marks=pytest.mark.long)])
def test_in_any_tree_is_found_what_is_in_each_of_its_files(searcher: Any, examples: int) -> None:
    search_wild_trees(searcher, examples)
