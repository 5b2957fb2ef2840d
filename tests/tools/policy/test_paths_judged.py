"""Rules about paths, as they are spelled and as they turn out to be when they are opened."""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tools.core.errors import PermissionDeniedError
from tools.core.spec import Confirmation, Effect, ToolSpec
from tools.policy.calls import Containment, Decision, Verdict, relative_path
from tools.policy.paths import PathPattern, path_rule
from tools.policy.policy import Policy

Judge = Callable[..., Decision]
Crib = Mapping[str, ToolSpec]

MATCHES = [
    ("src/a.py", "src/a.py", True),
    ("./src/a.py", "src/a.py", True),
    ("src//a.py", "src/a.py", True),
    ("src/*", "src/a.py", True),
    ("src/*", "src/a/b.py", False),
    ("src/*", "src", False),
    ("src/**", "src/a/b.py", True),
    ("src/**", "src", True),
    ("src/**", "srcs/a", False),
    ("src/**", "a/src/b", False),
    ("**/*.py", "a.py", True),
    ("**/*.py", "a/b/c.py", True),
    ("**/*.py", "a/b/c.pyc", False),
    ("**/a/**/b", "a/b", True),
    ("**/a/**/b", "x/a/y/z/b", True),
    ("**/a/**/b", "x/a/y/z/c", False),
    ("**", "anything/at/all", True),
    ("**", ".", True),
    (".", ".", True),
    ("*", "a", True),
    ("*", "a/b", False),
    ("a?c", "abc", True),
    ("a?c", "a/c", False),
    ("a?c", "ac", False),
    ("a\\*c", "a*c", True),
    ("a\\*c", "abc", False),
    ("a[b]c", "a[b]c", True),
    ("a[b]c", "abc", False),
    ("{a,b}", "a", False),
    ("src", "src/a", False),
    ("SRC/**", "src/a", False),
    ("*a*b*c*", "xaxbxcx", True),
    ("*a*b*c*", "xaxcxbx", False),
]


@pytest.mark.parametrize(("pattern", "path", "matches"), MATCHES)
def test_a_pattern_means_these_paths(pattern: str, path: str, matches: bool) -> None:
    assert PathPattern.parse(pattern).matches(path) is matches


COVERED = [
    ("secrets", "secrets/a/b", True),
    ("secrets/", "secrets/a", True),
    ("secrets/**", "secrets", True),
    ("secrets", "secretsx", False),
    ("**/.ssh", "home/.ssh/id", True),
    ("*.key", "a.key", True),
    ("*.key", "a.key/b", True),
    ("*.key", "d/a.key", False),
    ("secrets", "Secrets/a", True),
    ("SECRETS", "secrets/a", True),
    ("straße", "STRASSE/a", True),
    ("caf\u00e9", "cafe\u0301/x", True),
    ("ﬁle", "file", True),
    ("secrets", "se\u200bcrets", True),
    ("secrets", "secrets./x", True),
    ("secrets/a", "secrets", False),
    (".", "anything", True),
]


@pytest.mark.parametrize(("pattern", "path", "covers"), COVERED)
def test_what_is_denied_covers_all_beneath_in_any_case(
    pattern: str, path: str, covers: bool
) -> None:
    assert PathPattern.parse(pattern).covers(path) is covers


@given(
    st.lists(st.sampled_from(["a", "b", "*", "**", "a*", "?"]), max_size=6),
    st.lists(st.sampled_from("ab"), max_size=6),
)
def test_patterns_are_compared_as_by_trying_every_way(pattern: list[str], path: list[str]) -> None:
    def fits(wanted: list[str], parts: list[str]) -> bool:
        if not wanted:
            return not parts
        if wanted[0] == "**":
            return fits(wanted[1:], parts) or bool(parts and fits(wanted, parts[1:]))
        if not parts:
            return False
        same = wanted[0] in {"*", "?", parts[0]} or (wanted[0] == "a*" and parts[0] == "a")
        return same and fits(wanted[1:], parts[1:])

    text = "/".join(pattern) or "."
    assert PathPattern.parse(text).matches("/".join(path) or ".") is fits(pattern, path)


@pytest.mark.parametrize(
    ("path", "relative"),
    [
        ("a/b", "a/b"),
        ("./a/b", "a/b"),
        ("a/./b", "a/b"),
        ("a/x/../b", "a/b"),
        ("a//b/", "a/b"),
        (".", "."),
        ("", "."),
        ("..", None),
        ("../a", None),
        ("a/../../b", None),
        ("/root/a", "a"),
        ("/root", "."),
        ("/root/", "."),
        ("//root/a", "a"),
        ("/root/../root/a", "a"),
        ("/root/../a", None),
        ("/rootx/a", None),
        ("/real/a", "a"),
        ("/etc/passwd", None),
    ],
)
def test_spelled_paths_are_made_relative_to_the_root(path: str, relative: str | None) -> None:
    assert relative_path(path, ("/root", "/real")) == relative


@given(st.text(max_size=20))
@example(path="~")
def test_the_rule_of_a_path_stands_for_it_alone(path: str) -> None:
    spelled = relative_path(path, ()) if not path.startswith("/") else None
    text = "" if spelled is None else path_rule(spelled)
    if text:
        assert PathPattern.parse(text).matches(str(spelled))
        assert not PathPattern.parse(text).matches(f"{spelled}x")


DENIED = [
    ("read_file(secrets/**)", "read_file", "secrets/a"),
    ("read_file(secrets/**)", "read_file", "./secrets/a"),
    ("read_file(secrets/**)", "read_file", "x/../secrets/a"),
    ("read_file(secrets/**)", "read_file", "/root/secrets/a"),
    ("read_file(secrets/**)", "read_file", "Secrets/a"),
    ("read_file(secrets)", "read_file", "secrets/a/b"),
    ("view_text_file(secrets/**)", "read_file", "secrets/a"),
    ("read_file(secrets/**)", "grep", "secrets"),
    ("read_file(secrets/**)", "list_directory", "secrets"),
    ("read_file(secrets/**)", "add_document", "secrets/a"),
    ("read_file(secrets/**)", "edit_file", "secrets/a"),
    ("grep(secrets/**)", "read_file", "secrets/a"),
    ("add_document(secrets/**)", "read_file", "secrets/a"),
    ("read(secrets/**)", "read_file", "secrets/a"),
    ("read(secrets/**)", "add_document", "secrets/a"),
    ("effect:read(secrets/**)", "read_file", "secrets/a"),
    ("tag:files(secrets/**)", "read_file", "secrets/a"),
    ("tag:files(secrets/**)", "add_document", "secrets/a"),
    ("*(secrets/**)", "add_document", "secrets/a"),
    ("write_file(secrets/**)", "write_file", "secrets/a"),
    ("write_file(secrets/**)", "edit_file", "secrets/a"),
    ("edit_file(secrets/**)", "write_file", "secrets/a"),
    ("write(secrets/**)", "write_file", "secrets/a"),
    ("effect:write(secrets/**)", "edit_file", "secrets/a"),
    ("read(/root/secrets/**)", "read_file", "secrets/a"),
    ("read(/root/**)", "read_file", "a"),
    ("read(/**)", "read_file", "a"),
    ("read(/*/secrets)", "read_file", "secrets/a"),
]


@pytest.mark.parametrize(("rule", "tool", "path"), DENIED)
def test_a_denied_place_is_denied_to_every_tool_that_does_the_same(
    rule: str, tool: str, path: str, crib: Crib
) -> None:
    policy = Policy("trusting", allow=["*"], deny=[rule], root=Path("/root"), find=crib.get)
    call = {crib[tool].subject.parameter: path}  # type: ignore[union-attr]  # each has one
    decision = policy.judge(crib[tool], call)
    assert (decision.verdict, decision.rule) == (Verdict.DENY, rule)


NOT_DENIED = [
    ("read_file(secrets/**)", "write_file", "secrets/a"),
    ("write_file(secrets/**)", "read_file", "secrets/a"),
    ("write_file(secrets/**)", "add_document", "secrets/a"),
    ("read(secrets/**)", "write_file", "secrets/a"),
    ("write(secrets/**)", "read_file", "secrets/a"),
    ("read_file(secrets/**)", "read_file", "secretsx/a"),
    ("read_file(secrets/**)", "read_file", "a/secrets/b"),
    ("read(/etc/**)", "read_file", "etc/passwd"),
    ("read(/other/**)", "read_file", "secrets/a"),
    ("bash(secrets/**)", "read_file", "secrets/a"),
]


@pytest.mark.parametrize(("rule", "tool", "path"), NOT_DENIED)
def test_other_places_stay_open(rule: str, tool: str, path: str, crib: Crib) -> None:
    policy = Policy(deny=[rule], root=Path("/root"), find=crib.get)
    call = {crib[tool].subject.parameter: path}  # type: ignore[union-attr]  # each has one
    assert policy.judge(crib[tool], call).verdict is Verdict.ALLOW


def test_an_allowed_path_is_no_other_path(judge: Judge) -> None:
    rules: dict[str, Any] = {"profile": "read-only", "allow": ["write_file(src/**)"]}
    for path in ("src/a", "./src/a", "src/b/../a", "src"):
        assert judge("write_file", {"file_path": path}, **rules).verdict is Verdict.ALLOW
    for path in ("a", "srcs/a", "src/../a", "../src/a", "/src/a", "SRC/a", "/etc/src/a"):
        assert judge("write_file", {"file_path": path}, **rules).verdict is Verdict.DENY


def refused(  # noqa: PLR0913  # what a check is of
    policy: Policy,
    spec: ToolSpec,
    spelled: str,
    actual: str,
    *,
    writing: bool,
    is_confirmed: bool = False,
) -> str:
    """Why a call about a path may not open what the path leads to; empty where it may."""
    call = {spec.subject.parameter: spelled}  # type: ignore[union-attr]  # it has one
    places = policy.places(spec, call, is_confirmed=is_confirmed)
    if places is None:
        return ""
    try:
        places.check(actual, writing=writing)
    except PermissionDeniedError as error:
        return error.message
    return ""


def test_without_rules_about_paths_nothing_is_checked_when_files_are_opened(crib: Crib) -> None:
    policy = Policy(allow=["bash(ls)"], ask=["write_file"], deny=["forget"], find=crib.get)
    assert all(policy.places(spec, {}) is None for spec in crib.values())


def test_a_link_to_a_denied_place_is_refused_when_it_is_opened(crib: Crib, tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "key").write_text("x")
    (tmp_path / "link").symlink_to("secrets/key")
    policy = Policy(deny=["read_file(secrets/**)"], root=tmp_path, find=crib.get)
    spec = crib["read_file"]
    # A check of the spelling alone lets the link pass.
    assert policy.judge(spec, {"file_path": "link"}).verdict is Verdict.ALLOW
    actual = os.path.relpath(os.path.realpath(tmp_path / "link"), os.path.realpath(tmp_path))
    message = refused(policy, spec, "link", actual, writing=False)
    assert "'secrets/key'" in message
    assert "read_file(secrets/**)" in message


def test_what_a_confirmed_call_leads_to_is_open_unless_a_rule_asks_about_it(crib: Crib) -> None:
    policy = Policy(ask=["read_file(private/**)"], find=crib.get)
    spec = replace(crib["read_file"], confirmation=Confirmation.REQUIRED)
    opens = partial(refused, policy, spec, "a", writing=False)
    assert not opens("b", is_confirmed=True)
    assert "read_file(private/**)" in opens("private/b", is_confirmed=True)
    # Where a grant stood for the answer, it was of the path given.
    assert "confirmation:required" in opens("b", is_confirmed=False)


@pytest.mark.parametrize("verdict", ["ask", "deny"])
@pytest.mark.parametrize("rule", ["write(locked/**)", "write(.github/**)"])
def test_rules_about_other_places_stop_no_confined_tool(
    crib: Crib, rule: str, verdict: str
) -> None:
    subject = crib["write_file"].subject
    effects = frozenset({Effect.READ, Effect.WRITE, Effect.EXECUTE})
    spec = replace(crib["bash"], name="clean", subject=subject, effects=effects)
    rules: dict[str, Any] = {verdict: [rule]}
    policy, level = Policy(**rules), Containment.OFFLINE
    call = {"file_path": "d.jsonl"}
    assert policy.judge(spec, call, containment=level).verdict is Verdict.ALLOW
    places = policy.places(spec, call, containment=level)
    assert places is not None
    places.check("d.clean.jsonl", writing=True)
    with pytest.raises(PermissionDeniedError):
        places.check(rule[6:-3] + "/a", writing=True)


def test_every_tool_that_opens_files_is_kept_out_of_denied_places(crib: Crib) -> None:
    policy = Policy(deny=["read_file(secrets/**)", "write_file(src/**)"], find=crib.get)
    for name in ("read_file", "grep", "list_directory", "add_document", "bash", "query"):
        places = policy.places(crib[name], {})
        assert places is not None
        assert places.hides("secrets")
        assert places.hides("secrets/a/b")
        assert not places.hides("src/a")
        places.check("src/a", writing=False)
        with pytest.raises(PermissionDeniedError):
            places.check("secrets/a", writing=False)
        with pytest.raises(PermissionDeniedError):
            places.check("src/a", writing=True)
    assert policy.places(crib["github_search"], {}) is None


def test_what_is_closed_to_reads_may_be_written_by_what_does_not_read(crib: Crib) -> None:
    policy = Policy(deny=["read(secrets/**)"], find=crib.get)
    assert not refused(policy, crib["write_file"], "secrets/a", "secrets/a", writing=True)
    assert refused(policy, crib["edit_file"], "b", "secrets/a", writing=True)


@pytest.mark.parametrize(
    ("rules", "spelled", "actual", "is_refused"),
    [
        # asked about and approved: what was approved, and no other place
        ({"ask": ["read_file(private/**)"]}, "private/a", "private/a", False),
        ({"ask": ["read_file(private/**)"]}, "private/a", "private/b", True),
        ({"ask": ["read_file(private/**)"]}, "private/a", "b", False),
        ({"ask": ["read_file(private/**)"]}, "link", "private/a", True),
        ({"ask": ["read_file(private/**)"]}, "a", "b", False),
        ({"ask": ["read_file(private/**)"]}, "private", "private/a/b", False),
        ({"ask": ["read_file(private/**)"]}, ".", "private/a", True),
        ({"ask": ["read_file(private/**)", "read_file"]}, ".", "private/a", True),
        ({"ask": ["read_file(**)"]}, ".", "private/a", False),
        ({"ask": ["read(private/**)"]}, "link", "private/a", True),
        # allowed by a path
        ({"profile": "read-only", "allow": ["read_file(a/**)"]}, "a/b", "c", False),
    ],
)
def test_a_place_that_asks_is_opened_only_by_the_path_that_was_asked_about(
    rules: dict[str, Any], spelled: str, actual: str, is_refused: bool, crib: Crib
) -> None:
    policy = Policy(rules.pop("profile", "standard"), find=crib.get, **rules)
    message = refused(policy, crib["read_file"], spelled, actual, writing=False)
    assert bool(message) is is_refused
    assert not is_refused or repr(actual) in message


def test_an_allowed_path_that_leads_elsewhere_is_judged_by_where_it_leads(crib: Crib) -> None:
    policy = Policy("read-only", allow=["write_file(src/**)"], find=crib.get)
    spec = crib["write_file"]
    assert policy.judge(spec, {"file_path": "src/link"}).verdict is Verdict.ALLOW
    assert not refused(policy, spec, "src/link", "src/other", writing=True)
    assert "read-only" in refused(policy, spec, "src/link", "etc/x", writing=True)


def test_a_tool_beneath_the_root_is_about_all_of_it_where_no_path_is_given(judge: Judge) -> None:
    rules = {"ask": ["grep(.)"]}
    assert judge("grep", {"pattern": "x"}, **rules).verdict is Verdict.ASK
    assert judge("grep", {"pattern": "x", "path": None}, **rules).verdict is Verdict.ASK
    assert judge("add_document", {"text": "x"}, ask=["add_document(**)"]).verdict is Verdict.ALLOW


def test_a_function_with_the_stored_context_may_write_to_its_path(crib: Crib) -> None:
    policy = Policy("standard", find=crib.get, deny=["write_file(secrets/**)"])
    ours = crib["add_document"]
    for spec, verdict in (
        (ours, Verdict.ALLOW),
        (replace(ours, source="function:crafts.py"), Verdict.DENY),
    ):
        assert policy.judge(spec, {"path": "secrets/a"}).verdict is verdict
