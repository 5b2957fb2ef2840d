import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.core.errors import InvalidArgumentsError
from tools.sandbox.search.search import alternatives, path_regex


def fits(pattern: str, path: str) -> bool:
    return bool(re.compile(path_regex(pattern), re.DOTALL).fullmatch(path))


@pytest.mark.parametrize(
    ("pattern", "named", "others"),
    [
        ("*.py", ["a.py", "b/c/a.py", ".py"], ["a.pyc", "a.py/b"]),
        ("./*.py", ["a.py"], ["b/a.py"]),
        ("**/*.py", ["a.py", "b/c/a.py"], ["a.txt"]),
        ("src/*.py", ["src/a.py"], ["src/b/a.py", "x/src/a.py"]),
        ("src/**", ["src/a", "src/b/c"], ["src", "a/src/b"]),
        ("src/", ["src/a", "src/b/c"], ["a/src/b"]),
        ("**", ["a", "b/c", ".hidden/x"], []),
        ("a/**/b", ["a/b", "a/x/y/b"], ["ab"]),
        ("*.{ts,tsx}", ["a.ts", "b/a.tsx"], ["a.t"]),
        ("{src,tests}/**/*.{py,pyi}", ["src/a.py", "tests/x/a.pyi"], ["docs/a.py"]),
        ("{a,b{c,d}}", ["a", "bc", "bd"], ["b", "{a"]),
        ("{a}", ["a"], ["{a}"]),
        ("x{,.bak}", ["x", "x.bak"], ["x."]),
        (r"\{a,b\}", ["{a,b}"], ["a"]),
        ("[{]a[}]", ["{a}"], ["a"]),
        ("a?c", ["abc", "aéc"], ["ac", "a/c"]),
        ("[a-c]x", ["bx"], ["dx"]),
        ("[!a-c]x", ["dx"], ["bx"]),
        ("a}b", ["a}b"], []),
    ],
)
def test_a_pattern_names_paths(pattern: str, named: list[str], others: list[str]) -> None:
    assert [path for path in named if not fits(pattern, path)] == []
    assert [path for path in others if fits(pattern, path)] == []


@pytest.mark.parametrize("pattern", ["{a,b", "[a", "a\\", "{a,{b}", "{a,b}" * 20])
def test_a_malformed_pattern_is_refused_with_what_is_wrong(pattern: str) -> None:
    with pytest.raises(InvalidArgumentsError, match="malformed"):
        path_regex(pattern)


@pytest.mark.parametrize("pattern", ["/etc/*", "../x", "a/../../b"])
def test_a_pattern_that_leads_elsewhere_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidArgumentsError, match="relative to `path`"):
        path_regex(pattern)


@given(st.text(alphabet="ab*?[]!-^/\\ .{},", max_size=20), st.text(alphabet="ab/.,{}", max_size=8))
def test_any_pattern_is_one_or_refused(pattern: str, path: str) -> None:
    try:
        assert fits(pattern, path) in {True, False}
    except InvalidArgumentsError:
        return


@given(st.lists(st.text(alphabet="ab", max_size=3), min_size=2, max_size=4))
def test_braces_stand_for_each_of_their_parts(parts: list[str]) -> None:
    assert alternatives("x{" + ",".join(parts) + "}y") == [f"x{part}y" for part in parts]


def test_braces_of_a_long_pattern_are_refused_before_they_hold_anything_up() -> None:
    with pytest.raises(InvalidArgumentsError, match="more than 16384 characters"):
        path_regex("{a,b}" * 8 + "[" * 400 + "*?x" * 186)
