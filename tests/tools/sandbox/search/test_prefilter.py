import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.sandbox.search.content import PlainText, stays_in_line

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
def test_where_a_plain_text_fits_its_bytes_are(pattern: str, line: str, ignore_case: bool) -> None:
    real = _compiled(pattern, re.IGNORECASE if ignore_case else 0)
    text = PlainText.of(pattern, ignore_case=ignore_case)
    if text is None or real is None or not real.search(line):
        return
    for encoding in ("utf-8", "latin-1"):
        assert text.is_in(line.encode(encoding, "replace"))


@settings(max_examples=10 * settings().max_examples)
@given(
    patterns, st.lists(lines.map(lambda line: line.replace("\r", "")), max_size=4), st.booleans()
)
def test_a_pattern_that_stays_in_a_line_fits_in_a_text_where_it_fits_in_a_line(
    pattern: str, some: list[str], ignore_case: bool
) -> None:
    flags = re.IGNORECASE if ignore_case else 0
    real = _compiled(pattern, flags)
    if real is None or not stays_in_line(pattern):
        return
    whole = re.compile(pattern, flags | re.MULTILINE)
    assert whole.search("\n".join(some)) or not any(map(real.search, some or [""]))


@pytest.mark.parametrize(
    ("pattern", "stays"),
    [
        (r"^class \w+\(", True),
        (r"(?P<a>x|(?:y))\.[a-z]+?.*b$|(?i:z){2,}", True),
        (r"a\s+b", False),
        ("[^a]", False),
        ("(?s:.)", False),
        ("(?<!a)b", False),
        (r"\Aa", False),
        (r"(?:\B)+", False),
        ("a*+b", False),
        (r"a\nb", False),
        ("a\nb", False),
        (r"a\x0ab", False),
    ],
)
def test_what_may_take_a_line_feed_does_not_stay_in_a_line(pattern: str, stays: bool) -> None:
    assert stays_in_line(pattern) is stays


@pytest.mark.parametrize("pattern", ["", "a.b", "^a", r"\ba", "(a)", "a|b", "é", "a\nb"])
def test_what_is_no_plain_text_is_not_looked_for_in_bytes(pattern: str) -> None:
    assert PlainText.of(pattern, ignore_case=False) is None


@pytest.mark.parametrize("pattern", ["Task Name", "(?i)Task Name"])
def test_letters_that_fold_beyond_ascii_are_not_looked_for(pattern: str) -> None:
    text = PlainText.of(pattern, ignore_case=not pattern.startswith("("))
    assert text == PlainText(b" name", ignores_case=True)
    assert text.is_in("a TA\u017f\u212a NAME".encode())
    assert not text.is_in(b"a task")
