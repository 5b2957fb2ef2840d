"""Names of upstream tools: safe for every client, and each tool has its own."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.conversion.naming import LONGEST, SEPARATOR, exposed_name

SERVERS = st.from_regex(r"\A[a-z0-9]([-_]?[a-z0-9]){0,14}\Z")
SAFE = re.compile(r"[A-Za-z0-9_-]+")


@pytest.mark.parametrize("own", ["get", "createIssue", "list-files", "a__b", "_x_", "READ_FILE"])
def test_a_safe_name_stays_as_it_is(own: str) -> None:
    assert exposed_name("git", own) == f"git__{own}"


@pytest.mark.parametrize(
    ("own", "start"),
    [
        ("fs.read", "x__fs_read_"),
        ("repos/create", "x__repos_create_"),
        ("Übersetze Text", "x__Ubersetze_Text_"),
        ("検索", "x__tool_"),
        ("🚀", "x__tool_"),
        ("", "x__tool_"),
        ("___.", "x__tool_"),
        ("\x1b[31mred", "x__31mred_"),
        ("\ud800", "x__tool_"),
        ("e" * 10_000, f"x__{'e' * (LONGEST - 10)}_"),
    ],
)
def test_an_unsafe_name_keeps_what_is_safe_and_gets_a_mark(own: str, start: str) -> None:
    name = exposed_name("x", own)
    assert name.startswith(start)
    assert re.fullmatch(r"[0-9a-f]{6}", name.removeprefix(start))


@given(server=SERVERS, own=st.text(max_size=200))
def test_every_name_is_one_that_every_client_accepts(server: str, own: str) -> None:
    name = exposed_name(server, own)
    assert SAFE.fullmatch(name)
    assert len(name) <= LONGEST
    assert len(f"mcp__toolcrib__{name}") <= 64
    assert len(f"toolcrib{name}") < 60


@given(server=SERVERS, own=st.text(max_size=100))
def test_the_server_is_what_stands_before_the_first_separator(server: str, own: str) -> None:
    assert exposed_name(server, own).partition(SEPARATOR)[0] == server


@given(
    server=SERVERS,
    names=st.lists(
        st.one_of(st.text("aA._- é𝗮", max_size=4), st.text(min_size=40, max_size=60)),
        unique=True,
        max_size=30,
    ),
)
def test_tools_of_a_server_have_names_of_their_own(server: str, names: list[str]) -> None:
    assert len({exposed_name(server, own) for own in names}) == len(names)


def test_no_name_can_be_chosen_to_be_that_of_a_marked_one() -> None:
    marked = exposed_name("x", "fs.read")
    assert exposed_name("x", marked.removeprefix("x__")) != marked


def test_names_that_differ_behind_the_cut_stay_apart() -> None:
    assert exposed_name("x", "a" * 60 + "b") != exposed_name("x", "a" * 60 + "c")


def test_tools_of_different_servers_are_never_called_alike() -> None:
    assert exposed_name("a", "b__c") != exposed_name("a-b", "c")
    assert exposed_name("a", "_b") != exposed_name("a_b", "")
