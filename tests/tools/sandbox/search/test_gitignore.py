import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.sandbox.search.gitignore import byte_text, read_rule, read_rules


@pytest.mark.parametrize(
    ("line", "named", "others"),
    [
        ("a", ["a", "b/a"], ["ab", "a/b"]),
        ("/a", ["a"], ["b/a"]),
        ("a/b", ["a/b"], ["c/a/b", "a/b/c"]),
        ("*.md", ["a.md", "b/.md"], ["a.mdx"]),
        ("a/*", ["a/b"], ["a/b/c", "a"]),
        ("**/a", ["a", "b/c/a"], ["ba"]),
        ("a/**", ["a/b", "a/b/c"], ["a"]),
        ("a/**/b", ["a/b", "a/c/d/b"], ["ab"]),
        ("a**b", ["ab", "axxb"], ["a/b"]),
        ("a?", ["ab"], ["a", "a/"]),
        ("[a-c]", ["b"], ["d"]),
        ("[!a]", ["b"], ["a"]),
        ("[]-]", ["]", "-"], ["a"]),
        ("[[:digit:]x]", ["7", "x"], ["a"]),
        ("[z-a]", [], ["a", "z", "-"]),
        ("\\#a", ["#a"], ["a"]),
        ("\\!a", ["!a"], ["a"]),
        ("a  ", ["a"], ["a  "]),
        ("a\\ ", ["a "], ["a"]),
        ("a.b", ["a.b"], ["axb"]),
    ],
)
def test_a_rule_names_what_it_names_in_git(line: str, named: list[str], others: list[str]) -> None:
    rule = read_rule(line)
    assert rule is not None
    assert [path for path in named if not rule.names(path, is_directory=False)] == []
    assert [path for path in others if rule.names(path, is_directory=False)] == []


def test_a_rule_with_a_slash_at_its_end_names_directories() -> None:
    rule = read_rule("!a/")
    assert rule is not None
    assert not rule.ignores
    assert rule.names("b/a", is_directory=True)
    assert not rule.names("b/a", is_directory=False)


@pytest.mark.parametrize("line", ["", "  ", "# a", "!", "/", "[", "a[b", "a\\", "x" * 2000])
def test_a_line_that_is_blank_a_remark_or_malformed_is_no_rule(line: str) -> None:
    assert read_rule(line) is None


@given(st.text(alphabet="ab*?[]!-^/\\ :.#&|~", max_size=20), st.text(alphabet="ab/]", max_size=8))
def test_any_line_is_a_rule_or_none(line: str, path: str) -> None:
    rule = read_rule(line)
    assert rule is None or rule.names(path, is_directory=True) in {True, False}


def test_a_file_is_read_as_git_reads_it() -> None:
    rules = read_rules(b"\xef\xbb\xbfa.md\r\n# remark\n\n!b\x0cc\n\xff\n")
    assert [(rule.ignores, rule.pattern.pattern) for rule in rules] == [
        (True, "ÿ"),
        (False, "b\\\x0cc"),
        (True, "a\\.md"),
    ]


def test_a_character_is_a_byte_as_in_git() -> None:
    one, two = read_rule("?"), read_rule("??")
    assert one is not None
    assert two is not None
    assert not one.names(byte_text("é"), is_directory=False)
    assert two.names(byte_text("é"), is_directory=False)


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("*a" * 60 + "b", "a" * 250),
        ("**/a/" * 60 + "b", "a/" * 900 + "c"),
        ("a**" * 60 + "b", "a" * 250),
        ("**/*a*/**/*a*/**/*a*/**/*a*/**/*a*/**/*a*/b", "aaaaaaaa/" * 200 + "c"),
    ],
)
def test_no_rule_takes_for_ever(line: str, path: str) -> None:
    rule = read_rule(line)
    assert rule is not None
    assert not rule.names(path, is_directory=False)
