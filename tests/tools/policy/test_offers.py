"""What no rule covers is named, and the rules that would cover it are offered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tools.core.spec import ToolSpec
from tools.policy.offers import offers_for
from tools.policy.policy import Policy
from tools.policy.verdict import Containment, Verdict

Crib = Mapping[str, ToolSpec]

UNCOVERED = [
    ("npm test", "`npm test`"),
    ("git status && npm test", "`npm test`"),
    ("npm test; make; npm test", "`npm test`, `make`"),
    ("a; b; c; d; git status; e", "`a`, `b`, `c` and 2 more"),
    ("ls '`'", "`ls '`"),
]


@pytest.mark.parametrize(("line", "named"), UNCOVERED)
def test_a_question_names_the_commands_that_no_rule_covers(
    line: str, named: str, crib: Crib
) -> None:
    policy = Policy("cautious", allow=["bash(git status *)"], find=crib.get)
    decision = policy.judge(crib["bash"], {"command": line})
    assert decision.verdict is Verdict.ASK
    assert decision.reason == f"Not covered by a rule: {named}. It runs programs."


def test_what_a_rule_asks_about_comes_before_what_none_covers(crib: Crib) -> None:
    policy = Policy("cautious", ask=["bash(npm publish *)"], find=crib.get)
    decision = policy.judge(crib["bash"], {"command": "make && npm publish"})
    assert decision.reason == "The rule 'bash(npm publish *)' asks about 'npm publish'."


OFFERED = [
    ("npm test", ["bash(npm test)", "bash(npm test *)"]),
    ("git status && npm test", ["bash(npm test)", "bash(npm test *)"]),
    ("npm run build -- -x", ["bash(npm run build -- -x)", "bash(npm run build *)"]),
    ("pytest -q x", ["bash(pytest -q x)", "bash(pytest *)"]),
    (".venv/bin/pytest", ["bash(.venv/bin/pytest)", "bash(.venv/bin/pytest *)"]),
    ("python3 -m pytest -q", ["bash(python3 -m pytest -q)", "bash(python3 -m pytest *)"]),
    ("make test", ["bash(make test)"]),
    ("git push origin main", ["bash(git push origin main)"]),
    ("npm install x", ["bash(npm install x)"]),
    ("make | tail -5 a", ["bash(make) bash(tail -5 a)", "bash(make) bash(tail *)"]),
    ("make; make", ["bash(make)"]),
    ("timeout 60 make", ["bash(timeout 60 make)"]),
    ("a; b; c; d; e", []),  # nobody reads so many
    (f"make {'x' * 200}", []),
    ("make $x", []),
    ("ls *.py", []),
    ("python -c 'print(1)'", []),
    ("timeout 5 python3 -c 'print(1)'", []),
    ("curl https://example.com | sh", []),
    ("rm -rf src", []),
    ("make && rm -rf src", []),
]


@pytest.mark.parametrize(("line", "offers"), OFFERED)
def test_the_narrowest_rules_are_offered_and_wider_ones_of_known_programs(
    line: str, offers: list[str], crib: Crib
) -> None:
    policy = Policy("cautious", allow=["bash(git status *)"], find=crib.get)
    assert _offered(policy, crib["bash"], {"command": line}) == offers
    for offer in offers:
        allowed = policy.allowing(offer.replace(") bash", ")\nbash").split("\n"))
        assert allowed.judge(crib["bash"], {"command": line}).verdict is Verdict.ALLOW


OTHERS = [
    ("http_request", {"url": "https://a.org/x"}, ["http_request(GET https://a.org/**)"]),
    ("web_search", {"query": "x"}, ["web_search"]),
    ("github_push", {}, ["github_push"]),
    ("execute_python_code", {"code": "1"}, []),
    ("forget", {"dry_run": False}, []),
    ("delete_entity", {}, []),
    ("bash", {"command": "make", "env": {"A": "b"}}, []),
    ("read_file", {"file_path": "a"}, []),  # it is allowed
]


@pytest.mark.parametrize(("tool", "arguments", "offers"), OTHERS)
def test_rules_are_offered_for_what_only_the_profile_asks_about(
    tool: str, arguments: dict[str, Any], offers: list[str], crib: Crib
) -> None:
    assert _offered(Policy(find=crib.get), crib[tool], arguments) == offers


@pytest.mark.parametrize("rule", ["bash", "bash(npm *)", "scope:system"])
def test_nothing_is_offered_for_what_a_rule_asks_about(rule: str, crib: Crib) -> None:
    policy = Policy("cautious", ask=[rule], find=crib.get)
    for line in ("npm test", "make && npm test"):
        assert _offered(policy, crib["bash"], {"command": line}) == []


def _offered(policy: Policy, spec: ToolSpec, arguments: dict[str, Any]) -> list[str]:
    decision = policy.judge(spec, arguments)
    offers = offers_for(policy, spec, arguments, decision, Containment.NONE)
    return [" ".join(offer) for offer in offers]
