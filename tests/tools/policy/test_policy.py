"""The order in which rules have force, the profiles, and what approvals leave behind."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tools.core.spec import ToolSpec
from tools.policy.calls import Containment, Decision, Verdict
from tools.policy.policy import Policy
from tools.policy.rules import PROFILES
from tools.policy.shell.shell_command import ShellCommand
from tools.policy.shell.words import line_rule
from tools.policy.suggested_rules import grant_for

Judge = Callable[..., Decision]
Crib = Mapping[str, ToolSpec]

LS = {"command": "ls"}
FILE = {"file_path": "a"}
WEB = {"url": "https://example.com/"}

# verdicts of: read-only, cautious, trusting, trusting and confined
PROFILED = [
    ("read_file", FILE, "allow allow allow allow"),
    ("grep", {}, "allow allow allow allow"),
    ("write_file", FILE, "deny allow allow allow"),
    ("edit_file", FILE, "deny allow allow allow"),
    ("todo", {}, "deny allow allow allow"),
    ("query", {}, "allow allow allow allow"),
    ("remember", {}, "deny allow allow allow"),
    ("add_document", {"path": "a"}, "deny allow allow allow"),
    ("delete_entity", {}, "deny ask allow allow"),
    ("forget", {}, "deny allow allow allow"),
    ("forget", {"dry_run": True}, "deny allow allow allow"),
    ("forget", {"dry_run": False}, "deny ask ask ask"),
    ("bash", LS, "deny ask ask allow"),
    ("bash_output", {}, "ask allow allow allow"),
    ("execute_python_code", {}, "deny ask ask allow"),
    ("http_request", WEB, "deny ask allow allow"),
    ("read_web_page", WEB, "ask ask allow allow"),
    ("web_search", {}, "ask ask allow allow"),
    ("github_search", {}, "ask allow allow allow"),
    ("github_push", {}, "deny ask allow allow"),
    ("roll_dice", {}, "deny allow allow allow"),
    ("run_code", {}, "allow ask ask allow"),
    ("made_up", {}, "allow ask ask allow"),
    ("call_tool", {}, "allow allow allow allow"),
]


@pytest.mark.parametrize(("tool", "arguments", "verdicts"), PROFILED)
def test_a_profile_says_what_holds_where_no_rule_fits(
    tool: str, arguments: dict[str, Any], verdicts: str, judge: Judge
) -> None:
    found = [
        judge(tool, arguments, profile=profile, containment=containment).verdict
        for profile, containment in (
            ("read-only", Containment.OFFLINE),
            ("cautious", Containment.OFFLINE),
            ("trusting", Containment.NONE),
            ("trusting", Containment.CONFINED),
        )
    ]
    assert found == verdicts.split()


@pytest.mark.parametrize(("tool", "arguments", "verdicts"), PROFILED)
def test_the_standard_profile_is_the_cautious_one_except_for_programs_that_reach_nothing(
    tool: str, arguments: dict[str, Any], verdicts: str, judge: Judge
) -> None:
    found = [judge(tool, arguments, containment=each).verdict for each in Containment]
    cautious = verdicts.split()[1]
    confined = "allow" if tool == "made_up" else cautious  # created tools have no network anyway
    runs = tool in {"bash", "execute_python_code", "run_code"}
    assert found == [cautious, confined, "allow" if runs else confined]


@pytest.mark.parametrize("tool", ["run_code", "made_up"])
@pytest.mark.parametrize("containment", [Containment.NONE, Containment.CONFINED])
def test_the_read_only_profile_allows_no_program_that_could_change_or_reach_anything(
    tool: str, containment: Containment, judge: Judge
) -> None:
    decision = judge(tool, profile="read-only", containment=containment)
    assert decision.verdict is Verdict.DENY


def test_every_tool_is_spoken_of_by_every_profile(crib: Crib, judge: Judge) -> None:
    for profile in PROFILES:
        for name in crib:
            decision = judge(name, profile=profile)
            assert decision.source in {f"profile {profile}", "tool"}
            assert decision.reason.endswith(".")


def test_deny_beats_ask_beats_allow_in_whatever_order(judge: Judge) -> None:
    rules = ["bash(ls *)", "bash", "scope:system", "*"]
    for deny, ask, allow in permutations(rules, 3):
        every = {"allow": [allow], "ask": [ask], "deny": [deny]}
        assert judge("bash", LS, **every).verdict is Verdict.DENY
        assert judge("bash", LS, ask=[ask], allow=[allow]).verdict is Verdict.ASK
        assert judge("bash", LS, allow=[allow]).verdict is Verdict.ALLOW


def test_rules_of_the_settings_beat_the_profile_and_the_tools_own_word(judge: Judge) -> None:
    final = {"dry_run": False}
    assert judge("forget", final, allow=["forget"]).verdict is Verdict.ALLOW
    assert judge("write_file", FILE, profile="read-only", allow=["write_file"]).verdict == "allow"
    assert judge("read_file", FILE, profile="trusting", deny=["read_file"]).verdict == "deny"
    assert judge("read_file", FILE, profile="trusting", ask=["read_file"]).verdict == "ask"


def test_a_decision_names_its_rule_and_where_that_stands(judge: Judge) -> None:
    denied = judge("bash", LS, deny=["execute_shell_command"])
    assert (denied.rule, denied.source) == ("execute_shell_command", "settings")
    assert denied.reason == "The rule 'execute_shell_command' denies it."
    profile = judge("web_search")
    assert (profile.rule, profile.source) == ("scope:system+effect:external", "profile standard")
    own = judge("forget", {"dry_run": False}, profile="trusting")
    assert (own.rule, own.source) == ("confirmation:required", "tool")
    granted = judge("bash", LS, grants=("bash(ls)",))
    assert (granted.rule, granted.source) == ("bash(ls)", "grant")


def test_what_merely_makes_a_call_is_allowed_unless_it_is_denied(judge: Judge) -> None:
    assert judge("call_tool", profile="read-only").verdict is Verdict.ALLOW
    assert judge("call_tool", ask=["call_tool", "*"]).verdict is Verdict.ALLOW
    assert judge("call_tool", deny=["call_tool"]).verdict is Verdict.DENY
    assert judge("call_tool", deny=["call_*"], allow=["call_tool"]).verdict is Verdict.DENY


@pytest.mark.parametrize("grant", ["bash", "bash(ls)", "bash(*)", "scope:system", "*"])
def test_a_grant_answers_questions_and_lifts_no_denial(grant: str, judge: Judge) -> None:
    assert judge("bash", LS).verdict is Verdict.ASK
    grants = (grant,)
    assert judge("bash", LS, grants=grants).verdict is Verdict.ALLOW
    assert judge("bash", LS, ask=["bash(ls *)"], grants=grants).verdict is Verdict.ALLOW
    assert judge("bash", LS, ask=["bash"], grants=grants).verdict is Verdict.ALLOW
    assert judge("bash", LS, deny=["bash(ls *)"], grants=grants).verdict is Verdict.DENY
    assert judge("bash", LS, deny=["bash"], grants=grants).verdict is Verdict.DENY
    assert judge("bash", LS, profile="read-only", grants=grants).verdict is Verdict.DENY
    hidden = {"command": "$x"}
    assert judge("bash", hidden, deny=["bash(rm *)"], grants=grants).verdict is Verdict.ASK


def test_a_granted_line_is_granted_in_the_root_only(judge: Judge) -> None:
    grants = ["bash(make test)"]
    for arguments in ({}, {"cwd": "."}):
        found = judge("bash", {"command": "make test", **arguments}, grants=grants)
        assert found.verdict is Verdict.ALLOW
    found = judge("bash", {"command": "make test", "cwd": "elsewhere"}, grants=grants)
    assert found.verdict is Verdict.ASK


def test_a_grant_of_a_tool_answers_for_every_call_of_it(judge: Judge) -> None:
    assert judge("web_search", {"query": "x"}, grants=("web_search",)).verdict is Verdict.ALLOW
    assert judge("bash", LS, grants=("bash",)).verdict is Verdict.ALLOW


def test_a_line_is_granted_by_rules_and_grants_together(judge: Judge) -> None:
    line = {"command": "git status && ls"}
    rules = {"allow": ["bash(git status)"]}
    assert judge("bash", line, **rules).verdict is Verdict.ASK
    assert judge("bash", line, grants=("bash(ls)",), **rules).verdict is Verdict.ALLOW
    assert judge("bash", line, grants=("bash(ls)",)).verdict is Verdict.ASK


GRANTED = [
    ("bash", {"command": "git status"}, "bash(git status)"),
    ("bash", {"command": "git  'status'"}, "bash(git status)"),
    ("bash", {"command": "ls 'a b'"}, "bash(ls 'a b')"),
    ("bash", {"command": "ls '*'"}, "bash(ls '*')"),
    ("bash", {"command": "ls && cat x | wc"}, "bash(ls && cat x | wc)"),
    ("bash", {"command": "echo '('"}, "bash(echo '(')"),
    ("bash", {"command": "sudo rm x"}, "bash(sudo rm x)"),
    ("bash", {"command": "ls *"}, ""),
    ("bash", {"command": "ls $x"}, ""),
    ("bash", {"command": "ls > x"}, ""),
    ("bash", {"command": "ls '\n'"}, ""),
    ("bash", {"command": "ls", "env": {"A": "b"}}, ""),
    ("bash", {"command": ""}, ""),
    ("execute_python_code", {"code": "1"}, ""),
    ("http_request", {"url": "https://a.org/x?y=z"}, "http_request(GET https://a.org/**)"),
    (
        "http_request",
        {"url": "http://LOCALHOST:8000/x", "method": "POST"},
        "http_request(POST http://localhost:8000/**)",
    ),
    ("http_request", {"url": "https://[::1]:1/"}, "http_request(GET https://[::1]:1/**)"),
    ("http_request", {"url": "https://x@a.org/"}, ""),
    ("read_web_page", {"url": "https://a.org/"}, "read_web_page(GET https://a.org/**)"),
    ("web_search", {"query": "x"}, "web_search"),
    ("write_file", {"file_path": "a/b"}, "write_file(./a/b)"),
    ("write_file", {"file_path": "a=b"}, "write_file(./a=b)"),
    ("write_file", {"file_path": "a*b (c)'"}, "write_file(./a\\*b (c)\\')"),
    ("write_file", {"file_path": "../a"}, ""),
    ("write_file", {"file_path": "a\nb"}, ""),
    ("forget", {"dry_run": False}, ""),
    ("delete_entity", {}, ""),
    ("github_push", {}, "github_push"),
    ("call_tool", {}, ""),
]


@pytest.mark.parametrize(("tool", "arguments", "grant"), GRANTED)
def test_the_narrowest_useful_rule_is_offered(
    tool: str, arguments: dict[str, Any], grant: str, crib: Crib, judge: Judge
) -> None:
    policy = Policy(ask=["write_file"], find=crib.get)
    assert grant_for(policy, crib[tool], arguments) == grant


WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
QUOTED = st.one_of(
    WORDS.map(lambda text: "'" + text.replace("'", "'\\''") + "'"),
    st.text("ab-=./:*?[()\\'\"|&; ", max_size=6).map(
        lambda text: "".join(f"\\{character}" for character in text)
    ),
    st.sampled_from(["a", "-b", "--c", "{}", "x=1", "*", "a?", "&&", "|", ";", "#x", "(", "git"]),
)
COMMANDS = st.lists(QUOTED, max_size=4).map(lambda words: " ".join(["git", *words]))


def grants_of_each(line: str) -> set[str]:
    plain = ShellCommand.parse(line).plain
    assert plain is not None
    return {f"bash({line_rule([words], ())})" for words in plain.commands}


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("git", Verdict.ALLOW),
        ("git && git", Verdict.ALLOW),
        ("git | git; git", Verdict.ALLOW),
        ("git && git status", Verdict.ASK),
        ("git && ls", Verdict.ASK),
    ],
)
def test_a_grant_for_a_command_allows_lines_of_that_command_alone(
    line: str, verdict: Verdict, crib: Crib
) -> None:
    grants = (grant_for(Policy(), crib["bash"], {"command": "git"}),)
    assert Policy().judge(crib["bash"], {"command": line}, grants=grants).verdict is verdict


@given(command=COMMANDS, other=COMMANDS)
@example(command="git", other="git && git")
@example(command="git && git", other="git")
def test_a_grant_allows_its_command_again_and_no_other(
    command: str, other: str, crib: Crib
) -> None:
    policy = Policy()
    grant = grant_for(policy, crib["bash"], {"command": command})
    if not grant:
        return
    grants = (grant,)
    assert policy.judge(crib["bash"], {"command": command}, grants=grants).verdict == "allow"
    if policy.judge(crib["bash"], {"command": other}, grants=grants).verdict == "allow":
        itself = grant_for(policy, crib["bash"], {"command": other}) == grant
        assert itself or grants_of_each(other) == {grant}


@given(path=st.text(max_size=12), other=st.text(max_size=12))
def test_a_granted_path_is_that_path_alone(path: str, other: str, crib: Crib) -> None:
    policy, spec = Policy(ask=["write_file"]), crib["write_file"]
    grant = grant_for(policy, spec, {"file_path": path})
    if not grant:
        return
    assert policy.judge(spec, {"file_path": path}, grants=(grant,)).verdict == "allow"
    if policy.judge(spec, {"file_path": other}, grants=(grant,)).verdict == "allow":
        assert grant_for(policy, spec, {"file_path": other}) == grant


@pytest.mark.parametrize("rule", ["push", "pu*", "push(branch=main)", "github_push"])
def test_a_tool_of_a_server_is_denied_by_its_bare_name_too(rule: str, judge: Judge) -> None:
    assert judge("github_push", {}, deny=[rule]).verdict is Verdict.DENY
    assert judge("github_push", {}, profile="trusting", ask=[rule]).verdict is Verdict.ASK


def test_a_tool_of_a_server_is_allowed_by_its_full_name_alone(judge: Judge) -> None:
    assert judge("github_push", {}, allow=["push", "pu*"]).verdict is Verdict.ASK
    assert judge("github_push", {}, allow=["github_push"]).verdict is Verdict.ALLOW


def test_a_name_that_is_ours_means_no_tool_of_a_server(crib: Crib) -> None:
    policy = Policy(allow=["github_push"], deny=["bash"], find=crib.get)
    theirs = replace(crib["github_push"], bare="bash")
    assert policy.judge(theirs, {}).verdict is Verdict.ALLOW


@pytest.mark.parametrize("rule", ["Bash(rm *)", "shell(rm *)", "ExecuteShellCommand(rm *)"])
def test_a_tool_is_denied_by_any_name_that_reaches_it(rule: str, crib: Crib) -> None:
    bash = replace(crib["bash"], aliases_elsewhere=("shell",))
    policy = Policy("trusting", deny=[rule], find=crib.get)
    for line, verdict in (("rm -r x", Verdict.DENY), ("ls", Verdict.ALLOW)):
        said = policy.judge(bash, {"command": line}, containment=Containment.CONFINED)
        assert said.verdict is verdict


def test_a_tool_is_allowed_by_a_name_where_that_reaches_it_and_no_pattern_means_it(
    crib: Crib,
) -> None:
    bash = replace(crib["bash"], aliases_elsewhere=("shell",))
    line = {"command": "ls"}
    for name, reached, verdict in (
        ("shell(ls)", bash, Verdict.ALLOW),
        ("shell(ls)", crib["roll_dice"], Verdict.ASK),
        ("she*", bash, Verdict.ASK),
    ):
        policy = Policy(allow=[name], find={"shell": reached}.get)
        assert policy.judge(bash, line).verdict is verdict


def test_a_place_is_closed_by_what_the_tool_is_called_elsewhere(crib: Crib) -> None:
    policy = Policy(deny=["Read(secrets/**)"], find={**crib, "Read": crib["read_file"]}.get)
    assert policy.judge(crib["grep"], {"path": "secrets"}).verdict is Verdict.DENY


def test_a_changed_tool_of_the_same_name_is_judged_anew(crib: Crib) -> None:
    policy = Policy()
    assert policy.judge(crib["todo"], {}).verdict is Verdict.ALLOW
    other = replace(crib["bash"], name="todo", aliases=())
    assert policy.judge(other, LS).verdict is Verdict.ASK


PLACES = ("src/a.py", "SRC/A.py", "secret/k", "./secret", "a b/c", ".", "..", "x\uff0a", "docs/x. ")
PLACE_RULES = ("src/**", "**/*.py", "Secret", "/crib/src", "/crib/**/k", "?rc/*", r"a\ b", "docs/*")
LINE_RULES = ("git push *", "/bin/GIT status", "* status", "g* *", "rm -rf *", "ls && rm *")
LINES = (
    *("git status", "rm -fr x", "GIT push", "$x status", "ls; sudo rm x", "git -C . push", "ls *"),
)
URL_RULES = ("https://a.com/**", "GET https://*.a.com/x", "https://*/admin", "http://a.com:80")
URLS = ("https://A.com/x", "https://b.a.com/x/y", "https://c.com/admin", "http://a.com", "http:x")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # it keeps nothing
@given(data=st.data())
def test_a_rule_among_many_means_what_it_means_alone(data: st.DataObject, judge: Judge) -> None:
    tool, parameter, rules, subjects = data.draw(
        st.sampled_from(
            [
                ("write_file", "file_path", PLACE_RULES, PLACES),
                ("bash", "command", LINE_RULES, LINES),
                ("http_request", "url", URL_RULES, URLS),
            ]
        )
    )
    among = [f"{tool}({each})" for each in data.draw(st.lists(st.sampled_from(rules), max_size=5))]
    arguments = {parameter: data.draw(st.sampled_from(subjects))}
    strictness = [Verdict.DENY, Verdict.ASK, Verdict.ALLOW]
    for verdict in strictness:
        together, nothing, *alone = (
            judge(tool, arguments, root=Path("/crib"), **{verdict: some}).verdict
            for some in (among, [], *([each] for each in among))
        )
        decisive = max if verdict is Verdict.ALLOW else min
        assert together is decisive([nothing, *alone], key=strictness.index)


OBEYED = ".vscode/settings.json"


@pytest.mark.parametrize("path", [OBEYED, "a/.VSCode/x", "./b/../.husky/pre-commit", ".envrc"])
def test_a_write_to_what_programs_obey_asks_in_every_profile_that_writes(
    path: str, judge: Judge
) -> None:
    for profile in ("cautious", "standard", "trusting"):
        for tool in ("write_file", "edit_file"):
            said = judge(tool, {"file_path": path}, profile=profile, grants=(f"{tool}({path})",))
            assert said.verdict is Verdict.ASK
        assert judge("read_file", {"file_path": path}, profile=profile).verdict is Verdict.ALLOW
    assert judge("write_file", {"file_path": path}, profile="read-only").verdict is Verdict.DENY


def test_the_question_says_what_obeys_the_file_and_offers_no_rule(crib: Crib) -> None:
    policy, spec = Policy(), crib["write_file"]
    said = policy.judge(spec, {"file_path": OBEYED})
    assert said.reason == "Editors run what stands in .vscode, and nothing confines that."
    assert grant_for(policy, spec, {"file_path": OBEYED}) == ""


@pytest.mark.parametrize(
    ("rules", "verdict"),
    [
        ({"allow": ["write_file(.vscode/settings.json)"]}, Verdict.ALLOW),
        ({"allow": ["write_file(.vscode/**)"]}, Verdict.ALLOW),
        ({"allow": ["write(**/.vscode/settings.json)"]}, Verdict.ALLOW),
        ({"allow": ["write_file"]}, Verdict.ASK),
        ({"allow": ["write_file(**)", "scope:sandboxed", "edit_file(.vscode/**)"]}, Verdict.ASK),
        ({"allow": ["write_file(.vs*/settings.json)"]}, Verdict.ASK),
        ({"allow": ["write_file(.vscode/other.json)"]}, Verdict.ASK),
        ({"allow": ["write_file(.vscode/**)"], "ask": ["write_file"]}, Verdict.ASK),
        ({"allow": ["write_file(.vscode/**)"], "deny": ["write(.vscode/**)"]}, Verdict.DENY),
    ],
)
def test_only_a_rule_that_names_it_lets_what_programs_obey_be_written_unasked(
    rules: dict[str, list[str]], verdict: Verdict, judge: Judge
) -> None:
    assert (
        judge("write_file", {"file_path": OBEYED}, profile="trusting", **rules).verdict is verdict
    )


@pytest.mark.parametrize("path", [".git/config", ".vscode/.git/x", ".config/toolcrib/config.toml"])
def test_nobody_is_asked_about_what_is_closed_for_good(path: str, crib: Crib) -> None:
    policy, arguments = Policy(allow=[f"write_file({path})"]), {"file_path": path}
    assert policy.judge(crib["write_file"], arguments).verdict is Verdict.ALLOW
    places = policy.places(crib["write_file"], arguments)
    assert not (places and places.permits(path))


def test_a_permit_is_for_the_place_that_was_judged_alone(crib: Crib) -> None:
    places = Policy().places(crib["write_file"], {"file_path": f"a/../{OBEYED}"})
    assert places is not None
    assert set(places.permits(OBEYED)) == {(".vscode",)}
    assert not places.permits(".vscode/tasks.json")
