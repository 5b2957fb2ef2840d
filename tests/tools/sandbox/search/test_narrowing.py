from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.sandbox.search.linewise import stays_in_line
from tools.sandbox.search.literal import Literals
from tools.sandbox.search.narrowing import narrowed

pytestmark = pytest.mark.slow

LETTERS = "abkKsSiI1_ .-\té\xe9ß\u017fKİ\u0131搜\r"
"""Among them what case folding takes from ASCII to beyond it and back."""

atoms = st.sampled_from(
    [
        *map(re.escape, LETTERS),
        *(".", r"\w", r"\W", r"\d", r"\D", r"\s", r"\S", r"\b", r"\B", "^", "$", r"\A", r"\Z"),
        *("[ab]", "[^ab]", "[a-k]", "[^k]", r"[\w-]", r"[^\d\s]", "[é-\u017f]", "[K]", r"[\s\S]"),
    ]
)


def _extended(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    suffixes = ["*", "+", "?", "*?", "+?", "??", "{2}", "{0,2}", "{1,}", "{3,12}", "*+", "?+"]
    return st.one_of(
        st.lists(inner, min_size=2, max_size=3).map("".join),
        st.builds("({}|{})".format, inner, inner),
        st.builds("(?:{}){}".format, inner, st.sampled_from(suffixes)),
        st.builds("(?{}{})".format, st.sampled_from(["=", "!", ">", "i:", "-i:", "s:"]), inner),
        st.builds("({})\\1".format, st.sampled_from(["a", "[ab]", ".", "k+"])),
        st.builds("(?P<x>{})?(?(x){}|{})".format, st.just("a"), inner, inner),
    )


patterns = st.recursive(atoms, _extended, max_leaves=8)
patterns |= patterns.map("(?i){}".format)
lines = st.text(alphabet=LETTERS, max_size=12)


def _compiled(pattern: str, flags: int) -> re.Pattern[str] | None:
    try:
        return re.compile(pattern, flags)
    except re.error:  # two groups of one name, a look-behind of no fixed width, …
        return None


@settings(max_examples=10 * settings().max_examples)
@given(patterns, lines, st.booleans())
def test_where_a_pattern_fits_its_narrowed_one_fits_in_every_encoding(
    pattern: str, line: str, ignore_case: bool
) -> None:
    real = _compiled(pattern, re.IGNORECASE if ignore_case else 0)
    if real is None or not real.search(line):
        return
    narrow = narrowed(pattern, ignore_case=ignore_case)
    if narrow is None:
        return
    fits = re.compile(narrow.removeprefix("(?-u)").encode()).search
    assert fits(line.encode())
    if line.isascii() or all(ord(each) < 256 for each in line):
        assert fits(line.encode("latin-1"))


@settings(max_examples=10 * settings().max_examples)
@given(patterns, lines, st.booleans())
def test_where_a_pattern_fits_its_literals_stand(
    pattern: str, line: str, ignore_case: bool
) -> None:
    real = _compiled(pattern, re.IGNORECASE if ignore_case else 0)
    if real is None or not real.search(line):
        return
    literals = Literals(pattern, ignore_case=ignore_case)
    for encoding in ("utf-8", "latin-1"):
        assert literals.may_be_in(line.encode(encoding, "replace"))


@settings(max_examples=10 * settings().max_examples)
@given(
    patterns, st.lists(lines.map(lambda line: line.replace("\r", "")), max_size=4), st.booleans()
)
def test_a_pattern_that_stays_in_a_line_fits_in_a_text_as_in_its_lines(
    pattern: str, some: list[str], ignore_case: bool
) -> None:
    flags = re.IGNORECASE if ignore_case else 0
    real = _compiled(pattern, flags)
    if real is None or not stays_in_line(pattern, ignore_case=ignore_case):
        return
    whole = re.compile(pattern, flags | re.MULTILINE)
    assert bool(whole.search("\n".join(some))) == any(map(real.search, some or [""]))


@pytest.mark.parametrize(
    ("pattern", "stays"),
    [
        (r"^class \w+\(", True),
        (r"(?<![^\W_])a.*b$|[^\n]+", True),
        (r"a\s+b", False),
        ("[^a]", False),
        ("(?s:.)", False),
        ("(?-m:^a)", False),
        (r"\Aa", False),
        (r"(?:\B)+", False),
        (r"a\nb", False),
    ],
)
def test_what_takes_a_line_feed_does_not_stay_in_a_line(pattern: str, stays: bool) -> None:
    assert stays_in_line(pattern, ignore_case=False) is stays


@pytest.mark.parametrize(
    ("pattern", "groups"),
    [
        (r"^\bdef (load|store)_all\(", [("_all(",), ("def ",), ("load", "store")]),
        ("a+bc(?P<x>de)f*", [("bcde",)]),
        ("x(a.bc|d)", [("x",), ("bc", "d")]),
        ("(abc|)d", [("d",)]),
        ("a(b|c(d|ef).)", [("a",), ("b", "c")]),
        ("(abc)?d", [("d",)]),
        ("(?i:abc)d", [("d",)]),
        ("(?=abc)x", [("x",)]),
        ("a\nbc", [("bc",)]),
        ("a.bc.def.ghij", [("ghij",), ("def",), ("bc",)]),
        ("[ab]", []),
    ],
)
def test_the_longest_texts_are_looked_for(pattern: str, groups: list[tuple[str, ...]]) -> None:
    assert Literals(pattern, ignore_case=False).groups == groups


@pytest.mark.parametrize("pattern", ["Task Name", "(?i)Task Name"])
def test_letters_that_fold_beyond_ascii_are_no_part_of_a_literal(pattern: str) -> None:
    literals = Literals(pattern, ignore_case=not pattern.startswith("("))
    assert literals.groups == [(" name",), ("ta",)]
    assert literals.may_be_in("a TA\u017f\u212a NAME".encode())
    assert not literals.may_be_in(b"a task")


@pytest.mark.parametrize("pattern", ["", "^$", "a*", r"\b", "(?=a)", "(a|)", "a\nb", "(?:)"])
def test_what_could_be_in_any_line_is_not_narrowed(pattern: str) -> None:
    assert narrowed(pattern, ignore_case=False) is None


@pytest.mark.parametrize("pattern", ["needle", r"class \w+\(", "é+", r"(a|b)\1", "^import"])
def test_what_can_be_missing_is_narrowed(pattern: str) -> None:
    narrow = narrowed(pattern, ignore_case=False)
    assert narrow is not None
    assert not re.search(narrow.removeprefix("(?-u)").encode(), b"?!")


@pytest.mark.parametrize("pattern", ["(", "a)", "[a", "*a", "(?P<1>a)", "\\", "(?<", "a{2,1}"])
def test_a_malformed_pattern_is_told_with_its_position(pattern: str) -> None:
    with pytest.raises(re.error) as caught:
        narrowed(pattern, ignore_case=False)
    assert caught.value.pos is not None


@pytest.mark.skipif(shutil.which("rg") is None, reason="ripgrep is asked")
@given(st.lists(patterns, min_size=1, max_size=10), st.booleans())
def test_ripgrep_takes_every_narrowed_pattern(pieces: list[str], ignore_case: bool) -> None:
    for pattern in (each for each in pieces if _compiled(each, 0)):
        narrow = narrowed(pattern, ignore_case=ignore_case)
        command = ["rg", "--no-config", "--text", f"--regexp={narrow or 'a'}", "--", "/dev/null"]
        done = subprocess.run(command, capture_output=True, cwd=Path("/"), check=False)
        assert done.returncode == 1, (narrow, done.stderr)
