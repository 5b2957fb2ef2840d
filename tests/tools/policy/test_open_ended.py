"""A rule that allows whatever its program can be made to run is told apart from others."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tools.core.spec import ToolSpec
from tools.policy.rules import Rule


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
            "git",
            "git status *",
            "git -C ** status *",
            "make",
            "make test",
            "npm run *",
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
