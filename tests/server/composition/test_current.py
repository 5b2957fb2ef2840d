"""What a running server makes of an edit of its settings file."""

from pathlib import Path
from typing import Any

import pytest

from server.composition.current import CurrentSettings
from server.composition.policy import counting_file
from server.settings import Settings
from server.settings.sources import load
from tools.policy.calls import Verdict
from tools.policy.policy import Policy


def _current(path: Path, **flags: Any) -> CurrentSettings:
    def make(settings: Settings) -> Policy:
        rules = settings.policy
        return Policy(rules.profile, allow=rules.allow, ask=rules.ask, deny=rules.deny)

    named = {key.replace("__", "."): value for key, value in flags.items()}
    return CurrentSettings(load(named, config_file=path, environ={}), make)


def _texts(current: CurrentSettings) -> dict[Verdict, list[str]]:
    return {
        verdict: [rule.text for rule in each] for verdict, each in current.policy().rules.items()
    }


def test_an_edit_counts_as_a_whole_from_the_next_call_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[policy]\nallow = ["bash(ls)"]\n')
    current = _current(path)
    first = current.policy()
    assert current.policy() is first
    path.write_text(
        '[policy]\nprofile = "cautious"\nallow = ["bash(make)"]\nask = ["forget"]\n'
        'deny = ["bash(rm *)"]\n'
    )
    with caplog.at_level("INFO", "toolcrib"):
        assert _texts(current) == {
            Verdict.DENY: ["bash(rm *)"],
            Verdict.ASK: ["forget"],
            Verdict.ALLOW: ["bash(make)"],
        }
    assert current.policy().profile == "cautious"
    assert "policy cautious with 1 deny, 1 ask, 1 allow." in caplog.text
    replaced = tmp_path / "new"
    replaced.write_text("# No rules.\n")
    replaced.rename(path)
    assert (_texts(current)[Verdict.DENY], current.policy().profile) == ([], "standard")


def test_what_needs_a_restart_is_said_and_the_rest_counts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "config.toml"
    path.write_text("")
    current = _current(path)
    path.write_text('surface = ["full"]\n[http]\nport = 7001\n[policy]\ndeny = ["forget"]\n')
    assert _texts(current)[Verdict.DENY] == ["forget"]
    assert current.settings.http.port != 7001
    assert current.settings.surface == ("lean",)
    [line] = [each for each in caplog.messages if "Restart Toolcrib" in each]
    assert line.endswith(f"{path}: surface, http.port.")


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ("[policy", "is not TOML"),
        ("[policy]\ndeny = []\n\xff", "is not UTF-8"),
        ('[policy]\ndeny = []\nallow = ["bash("]\n', "policy.allow = "),
        ('[policy]\ndeny = []\nprofile = "lax"\n', "policy.profile = 'lax'"),
        ("[policy]\ndenny = []\n", "Did you mean 'policy.deny'?"),
        ("[policy.deny]\nbash = true\n", "Unknown setting 'policy.deny.bash'"),
        ("policy = 3\n", "Unknown setting 'policy'"),
        ("[Policy]\ndeny = []\n", "Did you mean 'policy.deny'?"),
        ("[polcy]\n", "Unknown setting 'polcy'"),
        ('[policy]\ndeny = []\n[http]\nport = "none"\n', "http.port = 'none'"),
        ("[policy]\ndeny = []\n[servers.toy]\n", "servers.toy"),
        ("[serch]\nalpha = 1\n", "Unknown setting 'serch.alpha'"),
        ("", "is empty"),
        (" \n\n", "is empty"),
        (None, "does not exist"),
    ],
)
def test_where_anything_is_wrong_nothing_of_the_edit_counts(
    broken: str | None, why: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[policy]\ndeny = ["bash(rm *)"]\n')
    current = _current(path)
    current.policy()
    for _ in range(2):  # a mistake is told once
        path.unlink()
        if broken is not None:
            path.write_bytes(broken.encode("latin-1"))
        assert _texts(current)[Verdict.DENY] == ["bash(rm *)"]
        if broken is None:
            path.touch()
    [line] = [each for each in caplog.messages if why in each]
    assert line.startswith("The settings are unchanged. ")
    path.write_text('[policy]\ndeny = ["forget"]\n')
    assert _texts(current)[Verdict.DENY] == ["forget"]


def test_what_a_flag_or_a_variable_sets_stays_when_the_rest_is_edited(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("")
    current = _current(path, policy__allow=("bash(ls)",))
    current.policy()
    path.write_text('[policy]\nallow = ["bash(make)"]\ndeny = ["forget"]\n')
    texts = _texts(current)
    assert (texts[Verdict.ALLOW], texts[Verdict.DENY]) == (["bash(ls)"], ["forget"])
    environ = {"TOOLCRIB_POLICY__ALLOW": "bash(ls)"}
    assert counting_file(load(config_file=path, environ=environ)) is None
    assert counting_file(load(config_file=path, environ={})) == path


def test_a_file_that_is_moved_into_the_root_counts_no_more(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, inner = tmp_path / "config.toml", tmp_path / "root" / "config.toml"
    inner.parent.mkdir()
    path.write_text('[policy]\ndeny = ["forget"]\n')
    current = _current(path, root=inner.parent)
    inner.write_text("# Nothing is denied.\n")
    path.unlink()
    path.symlink_to(inner)
    assert _texts(current)[Verdict.DENY] == ["forget"]
    assert "is now inside the root" in caplog.text


def test_a_file_that_agents_could_make_counts_from_the_next_start_only(tmp_path: Path) -> None:
    path = tmp_path / "root" / "config.toml"
    path.parent.mkdir()
    path.write_text("")
    (tmp_path / "link.toml").symlink_to(path)
    for each in (path, tmp_path / "link.toml"):
        settings = load({"root": tmp_path / "root"}, config_file=each, environ={})
        assert counting_file(settings) is None
