"""`toolcrib policy` shows the rules and says which of them decides."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.server.cli.conftest import Command

SETTINGS = """
[policy]
profile = "standard"
allow = ["bash(git status *)"]
ask = ["write_file(src/**)"]
deny = ["bash(rm *)", "read(secrets/**)"]
"""


@pytest.fixture
def config(work: Path) -> Path:
    file = work / "toolcrib.toml"
    file.write_text(SETTINGS)
    return file


def test_a_call_is_tested_without_being_made(cli: Command, work: Path, config: Path) -> None:
    call = json.dumps({"file_path": "src/a", "content": "x"})
    ended = cli("policy", "test", "write_file", call, "--config", str(config))
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines() == [
        "ask: write_file",
        "rule: write_file(src/**) (settings)",
        "why: The rule 'write_file(src/**)' asks about 'src/a'.",
        "an approval may be remembered as: write_file(./src/a)",
    ]
    assert not (work / "src").exists()


def test_each_command_of_a_line_has_a_line(cli: Command, config: Path) -> None:
    call = json.dumps({"command": "git status && ls; rm x"})
    ended = cli("policy", "test", "bash", call, "--unconfined", "--config", str(config))
    assert ended.out.splitlines() == [
        "deny: bash",
        "rule: bash(rm *) (settings)",
        "why: The rule 'bash(rm *)' denies 'rm x'.",
        "  allow: git status (bash(git status *), settings)",
        "  ask: ls (scope:system+effect:execute, profile standard)",
        "  deny: rm x (bash(rm *), settings)",
    ]


def test_an_alias_and_a_denied_place_are_understood(cli: Command, config: Path) -> None:
    call = json.dumps({"file_path": "secrets/x"})
    ended = cli("policy", "test", "view_text_file", call, "--json", "--config", str(config))
    assert json.loads(ended.out) == {
        "tool": "read_file",
        "verdict": "deny",
        "rule": "read(secrets/**)",
        "source": "settings",
        "reason": "The rule 'read(secrets/**)' denies 'secrets/x'.",
        "parts": [],
    }


def test_a_rule_of_one_tool_closes_a_place_to_all(cli: Command, work: Path) -> None:
    file = work / "toolcrib.toml"
    file.write_text(f'[policy]\ndeny = ["read_file({work}/secrets)"]\n')
    call = json.dumps({"path": "secrets/x"})
    ended = cli("policy", "test", "list_directory", call, "--root", ".", "--config", str(file))
    assert ended.out.startswith("deny: list_directory\n")


def test_confinement_is_supposed_when_it_is_said(cli: Command, monkeypatch: Any) -> None:
    monkeypatch.setenv("TOOLCRIB_POLICY__PROFILE", "trusting")
    call = json.dumps({"command": "make"})
    assert cli("policy", "test", "bash", call, "--unconfined").out.startswith("ask: bash\n")
    assert cli("policy", "test", "bash", call, "--confined").out.startswith("allow: bash\n")


def test_confinement_is_as_it_is_here_when_nothing_is_said(cli: Command, monkeypatch: Any) -> None:
    call = json.dumps({"command": "make"})
    assert cli("policy", "test", "bash", call).out.startswith("allow: bash\n")
    monkeypatch.setenv("TOOLCRIB_SYSTEM__SANDBOX", "off")
    assert cli("policy", "test", "bash", call).out.startswith("ask: bash\n")


@pytest.mark.parametrize("supposed", [(), ("--confined",)])
def test_a_program_over_tools_is_judged_by_the_process_that_it_runs_in(
    cli: Command, monkeypatch: Any, supposed: tuple[str, ...]
) -> None:
    monkeypatch.setenv("TOOLCRIB_SYSTEM__NETWORK", '["packages"]')
    call = json.dumps({"code": "1"})
    assert cli("policy", "test", "run_code", call, *supposed).out.startswith("allow: run_code\n")
    assert cli("policy", "test", "run_code", call, "--unconfined").out.startswith("ask: run_code\n")


def test_the_rules_are_shown_in_the_order_of_their_force(cli: Command, config: Path) -> None:
    ended = cli("policy", "show", "--json", "--config", str(config))
    shown = json.loads(ended.out)
    assert shown["profile"] == "standard"
    assert [f"{each['verdict']} {each['rule']}" for each in shown["rules"]][:5] == [
        "deny bash(rm *)",
        "deny read(secrets/**)",
        "ask write_file(src/**)",
        "allow bash(git status *)",
        "allow source:created",
    ]
    text = cli("policy", "show", "--config", str(config)).out
    assert all(f"{each['rule']}  ({each['source']})" in text for each in shown["rules"])


@pytest.mark.parametrize(
    ("rule", "warning"),
    [
        ("bahs(ls)", "applies to no current tool"),
        ("forget(dryrun=false)", "can never match: forget has no parameter dryrun"),
    ],
)
def test_rules_that_can_never_match_are_warned_of(
    rule: str, warning: str, cli: Command, monkeypatch: Any
) -> None:
    monkeypatch.setenv("TOOLCRIB_POLICY__DENY", json.dumps([rule]))
    for command in (("show",), ("test", "query", '{"query": "x"}')):
        ended = cli("policy", *command)
        assert ended.code == 0
        assert ended.err.startswith(f"Warning: the rule {rule!r} ")
        assert warning in ended.err


def test_a_rule_that_allows_whatever_its_program_runs_is_warned_of(
    cli: Command, monkeypatch: Any
) -> None:
    monkeypatch.setenv("TOOLCRIB_POLICY__ALLOW", json.dumps(["bash(git *)", "bash(find *)"]))
    monkeypatch.setenv("TOOLCRIB_POLICY__DENY", json.dumps(["bash(make *)"]))
    for command in (("show",), ("test", "bash", '{"command": "ls"}')):
        ended = cli("policy", *command)
        assert ended.code == 0
        assert ended.err == (
            "Warning: the rule 'bash(git *)' allows anything that git can be made to run: name the"
            " subcommands, as in bash(git status *).\n"
        )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("test",), "No tool was named."),
        (("test", "bash", "ls"), "not a JSON object"),
        (("test", "bash", "[1]"), "not a JSON object"),
        (("test", "bash", "{}"), "command"),
        (("test", "bahs"), "No tool is called 'bahs'"),
    ],
)
def test_what_is_wrong_with_a_test_is_said(
    arguments: tuple[str, ...], message: str, cli: Command
) -> None:
    ended = cli("policy", *arguments)
    assert (ended.code, ended.out) == (1, "")
    assert message in ended.err


def test_a_wrong_rule_of_the_settings_is_said_with_an_example(
    cli: Command, monkeypatch: Any
) -> None:
    monkeypatch.setenv("TOOLCRIB_POLICY__ALLOW", "bash(")
    ended = cli("policy", "show")
    assert ended.code == 1
    assert "'bash('" in ended.err
    assert "bash(git status *)" in ended.err
