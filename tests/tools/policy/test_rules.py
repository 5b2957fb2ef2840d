"""How rules are read, and what is refused with advice."""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.core.spec import ToolSpec
from tools.policy.calls import Decision
from tools.policy.rules import Rule

Judge = Callable[..., Decision]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        (" ", "empty"),
        ("bash(", "parentheses"),
        ("bash)", "parentheses"),
        ("bash(ls", "parentheses"),
        ("(ls)", "parentheses"),
        ("bash()", "leave them out"),
        ("bash( )", "leave them out"),
        ("ba sh", "names no tool"),
        ("bash!", "names no tool"),
        ("bash+", "names no tool"),
        ("scope:", "names no tool"),
        ("scope:moon", "not one of sandboxed, system, mcp, context"),
        ("effect:delete", "not one of read, write, execute, external"),
        ("only:read,all", "not one of read, write, execute, external"),
        ("colour:red", "not a selector"),
        ("scope:system+scope:mcp", "two scopes"),
        ("read", "say which paths"),
        ("write", "say which paths"),
        ("read(../x)", ".."),
        ("read(~/x)", "home directory"),
        ("read(a**)", "whole component"),
        ("bash(git ')", "quote"),
        ('bash(git "a)', "quote"),
        ("bash(git && )", "lacks a command"),
        ("bash(| git x)", "lacks a command"),
        ("forget(dry_run=false, dry_run=true)", "appears twice"),
        ('forget(a="x)', "quote"),
        ('forget(a="x"y)', "comma"),
        ("http_request(ftp://example.com/**)", "https://"),
        ("http_request(https://*example.com/**)", "*.example.com"),
        ("http_request(https://user@example.com/**)", "user information"),
        ("http_request(https://example.com/**?x=1)", "query"),
        ("http_request(https://example.com/a/../b)", "in its path"),
        ("http_request(https://0x7f.1/**)", "address"),
        ("http_request(https://example.com:99999/**)", "port"),
        ("http_request(https:///**)", "can match no URL"),
        ("bash(a\nb)", "cannot be seen"),
        ("bash(a\u202eb)", "cannot be seen"),
    ],
)
def test_a_rule_that_cannot_be_read_is_refused_with_its_reason_and_an_example(
    text: str, why: str
) -> None:
    with pytest.raises(ValueError, match="is wrong") as refused:
        Rule.parse(text)
    assert repr(text) in str(refused.value)
    assert why in str(refused.value)
    assert "bash(git status *)" in str(refused.value)


@given(st.text(max_size=30))
def test_any_text_is_a_rule_or_refused(text: str) -> None:
    for rule in (text, f"bash({text})", f"http_request(https://{text})", f"read({text})"):
        with contextlib.suppress(ValueError):
            assert Rule.parse(rule).text == rule


SELECTED = [
    ("bash", {"bash"}),
    ("execute_shell_command", {"bash"}),
    ("execute_*", {"bash", "execute_python_code"}),
    ("bash*", {"bash", "bash_output"}),
    ("*_file", {"read_file", "write_file", "edit_file"}),
    ("scope:mcp", {"github_search", "github_push"}),
    ("scope:mcp+effect:write", {"github_push"}),
    ("scope:system+effect:execute", {"bash", "execute_python_code", "run_code"}),
    ("scope:system+only:read,external", {"bash_output", "read_web_page", "web_search"}),
    ("tag:system", {"bash"}),
    ("tag:files+effect:write", {"write_file", "edit_file"}),
    ("source:function", {"roll_dice"}),
    ("source:function:dice.py", {"roll_dice"}),
    ("source:function:other.py", set()),
    ("source:upstream", {"github_search", "github_push"}),
    ("source:upstream:github", {"github_search", "github_push"}),
    ("source:up", set()),
    ("source:created", {"made_up"}),
    ("github_*+only:read", {"github_search"}),
    ("effect:read+effect:write+scope:sandboxed", {"edit_file"}),
    ("nothing_like_it", set()),
    ("BASH", set()),
]


@pytest.mark.parametrize(("selector", "names"), SELECTED)
def test_a_selector_means_these_tools(
    selector: str, names: set[str], crib: Mapping[str, ToolSpec]
) -> None:
    rule = Rule.parse(selector)
    assert {name for name, spec in crib.items() if rule.selector.fits(spec)} == names


def test_a_server_that_is_called_like_a_group_is_none(crib: Mapping[str, ToolSpec]) -> None:
    theirs = replace(crib["github_push"], tags=("files",), source="upstream:files")
    assert not Rule.parse("tag:files").selector.fits(theirs)
    assert Rule.parse("source:upstream:files").selector.fits(theirs)


ARGUMENTS = [
    ("forget", "dry_run=false", {"dry_run": False}, True),
    ("forget", "dry_run=false", {"dry_run": True}, False),
    ("forget", "dry_run=false", {}, False),
    ("forget", "dry_run=true", {}, True),
    ("forget", "dry_run=null", {"dry_run": None}, True),
    ("forget", "dry_run=fa*", {"dry_run": False}, True),
    ("manage_memory", "action=forget", {"action": "forget"}, True),
    ("manage_memory", "action=forget", {"action": "stats"}, False),
    ("manage_memory", "action=f*", {"action": "forget"}, True),
    ("manage_memory", 'action="f*"', {"action": "forget"}, False),
    ("manage_memory", 'action="f*"', {"action": "f*"}, True),
    ("manage_memory", 'action="a, limit=1"', {"action": "a, limit=1"}, True),
    ("manage_memory", "limit=10", {}, True),
    ("manage_memory", "limit=10", {"limit": 10.0}, True),
    ("manage_memory", "limit=1", {"limit": True}, False),
    ("manage_memory", 'limit="10"', {"limit": 10}, False),
    ("manage_memory", "action=forget, dry_run=false", {"action": "forget"}, False),
    ("manage_memory", "action=forget, dry_run=false", {"action": "forget", "dry_run": False}, True),
    ("manage_memory", "action=forget,dry_run=false", {"action": "forget", "dry_run": False}, True),
    ("manage_memory", "action=*", {"action": ["forget"]}, False),
    ("manage_memory", "action=", {"action": ""}, True),
]


@pytest.mark.parametrize(("tool", "specifier", "arguments", "fits"), ARGUMENTS)
def test_arguments_are_compared_by_name(
    tool: str, specifier: str, arguments: dict[str, object], fits: bool, judge: Judge
) -> None:
    decision = judge(tool, arguments, deny=[f"{tool}({specifier})"])
    assert (decision.verdict == "deny") is fits


@pytest.mark.parametrize(
    ("rule", "tool", "why"),
    [
        ("forget(dryrun=false)", "forget", "no parameter dryrun"),
        ("bash(FOO=1)", "bash", "no parameter FOO"),
        ("bash(foo=1 ls)", "bash", "no parameter foo"),
        ("query(rm x)", "query", "arguments only"),
        ("http_request(api.example.com)", "http_request", "https://"),
        ("read_file(../x)", "read_file", ".."),
    ],
)
def test_a_rule_that_cannot_fit_its_own_tool_denies_and_asks_always_and_never_allows(
    rule: str, tool: str, why: str, crib: Mapping[str, ToolSpec], judge: Judge
) -> None:
    assert why in Rule.parse(rule).problem(crib[tool])
    denied = judge(tool, {}, deny=[rule])
    assert (denied.verdict, why in denied.reason) == ("deny", True)
    assert judge(tool, {}, ask=[rule]).verdict == "ask"
    assert judge(tool, {}, profile="read-only", allow=[rule]).rule != rule


def test_a_specifier_of_another_kind_leaves_the_other_tools_of_a_group_alone(judge: Judge) -> None:
    rules = {"deny": ["scope:system(rm *)"], "allow": ["scope:system"]}
    assert judge("bash", {"command": "rm x"}, **rules).verdict == "deny"
    assert judge("http_request", {"url": "https://example.com"}, **rules).verdict == "allow"


@pytest.mark.parametrize(
    ("rule", "excess"),
    [
        ("git *", "git can be made to run: name the subcommands, as in bash(git status *)"),
        ("/usr/bin/git *", "git can be made to run: name the subcommands"),
        ("make *", "make can be made to run: name the targets, as in bash(make test)"),
        ("npm *", "npm can be made to run: name the subcommands"),
        ("uv *", "uv can be made to run: name the subcommands"),
        ("python3 *", "python3 can be made to run: name the files"),
        ("python3 -c *", "python3 can be made to run: name the files"),
        ("bash *", "bash can be made to run: name the files"),
        ("docker *", "docker can be made to run: name what it runs"),
        ("npx * --yes", "npx can be made to run: name what it runs"),
        ("ls && ssh *", "ssh can be made to run: name what it runs"),
    ],
)
def test_a_rule_that_names_no_more_than_such_a_program_is_one(
    rule: str, excess: str, crib: Mapping[str, ToolSpec]
) -> None:
    assert Rule.parse(f"bash({rule})").excess(crib["bash"]).startswith(excess)


@pytest.mark.parametrize(
    "rule",
    [
        *(
            *("git", "git status *", "git -C ** status *", "make", "make test", "npm run *"),
            "npx tsc *",
        ),
        *("python -m pytest *", "python *.py *", "python -m *", "bash scripts/x.sh *"),
        *("ls *", "pytest *", "* --version"),
        # What these run needs a rule of its own.
        *("find *", "sed *", "env *", "timeout *", "xargs *", "uv run *"),
    ],
)
def test_a_rule_that_says_what_may_run_is_none(rule: str, crib: Mapping[str, ToolSpec]) -> None:
    assert Rule.parse(f"bash({rule})").excess(crib["bash"]) == ""


@pytest.mark.parametrize("rule", ["bash", "bash(command=git)", "bash(git *)"])
def test_rules_that_are_not_about_a_command_are_none(
    rule: str, crib: Mapping[str, ToolSpec]
) -> None:
    assert Rule.parse(rule).excess(crib["write_file"]) == ""
