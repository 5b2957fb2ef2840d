"""Rules that allow count as soon as they stand in the settings file; no others do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from server.composition.current_policy import CurrentPolicy, counting_file
from server.settings.sources import load
from tools.policy.policy import Policy
from tools.policy.verdict import Verdict


def _current(path: Path, **flags: Any) -> CurrentPolicy:
    def make(rules: Any) -> Policy:
        return Policy(rules.profile, allow=rules.allow, ask=rules.ask, deny=rules.deny)

    named = {key.replace("__", "."): value for key, value in flags.items()}
    return CurrentPolicy(load(named, config_file=path, environ={}), make)


def _texts(current: CurrentPolicy) -> dict[Verdict, list[str]]:
    return {verdict: [rule.text for rule in each] for verdict, each in current().rules.items()}


def test_a_rule_that_allows_counts_at_once_and_none_that_denies_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[policy]\nallow = ["bash(ls)"]\ndeny = ["bash(rm *)"]\n')
    current = _current(path)
    first = current()
    assert current() is first
    path.write_text('[policy]\nprofile = "trusting"\nallow = ["bash(ls)", "bash(make)"]\n')
    texts = _texts(current)
    assert texts[Verdict.ALLOW] == ["bash(ls)", "bash(make)"]
    assert texts[Verdict.DENY] == ["bash(rm *)"]
    assert current().profile == "standard"
    path.unlink()
    assert _texts(current) == {
        Verdict.DENY: ["bash(rm *)"],
        Verdict.ASK: [],
        Verdict.ALLOW: [],
    }


@pytest.mark.parametrize("broken", ["[policy", '[policy]\nallow = ["bash("]\n', "policy = 3\n"])
def test_a_broken_file_leaves_the_policy_as_it_was(
    broken: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[policy]\nallow = ["bash(ls)"]\n')
    current = _current(path)
    current()
    path.write_text(broken)
    assert _texts(current)[Verdict.ALLOW] == ["bash(ls)"]
    assert "The policy stays as it was" in caplog.text


def test_rules_that_a_flag_or_a_variable_sets_are_those_of_the_start(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("")
    current = _current(path, policy__allow=("bash(ls)",))
    current()
    path.write_text('[policy]\nallow = ["bash(make)"]\n')
    assert _texts(current)[Verdict.ALLOW] == ["bash(ls)"]
    environ = {"TOOLCRIB_POLICY__ALLOW": "bash(ls)"}
    assert counting_file(load(config_file=path, environ=environ)) is None
    assert counting_file(load(config_file=path, environ={})) == path


def test_a_file_that_agents_could_make_counts_from_the_next_start_only(tmp_path: Path) -> None:
    path = tmp_path / "root" / "config.toml"
    path.parent.mkdir()
    path.write_text("")
    (tmp_path / "link.toml").symlink_to(path)
    for each in (path, tmp_path / "link.toml"):
        settings = load({"root": tmp_path / "root"}, config_file=each, environ={})
        assert counting_file(settings) is None
