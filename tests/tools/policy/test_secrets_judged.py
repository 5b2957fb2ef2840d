"""A request with a secret is allowed by rules alone that name the secret."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from tools.core.spec import ToolSpec
from tools.policy.calls import Decision, Verdict
from tools.policy.policy import Policy
from tools.policy.suggested_rules import grant_for

Judge = Callable[..., Decision]
URL = "https://api.example.com/v1"
WITH = {"url": URL, "secret": "api"}


@pytest.mark.parametrize("profile", ["standard", "trusting"])
@pytest.mark.parametrize(
    "rule",
    [
        "*",
        "http_request",
        "http_request(GET https://api.example.com/**)",
        *("http_request(https://*/**)", "http_request(method=GET)", "http_request(secret=b)"),
        *("http_request(secret=api, method=POST)", "scope:system", "tag:web"),
    ],
)
def test_a_rule_that_does_not_name_it_lets_it_be_asked_about(
    judge: Judge, profile: str, rule: str
) -> None:
    decision = judge("http_request", WITH, profile=profile, allow=[rule])
    assert decision.verdict is Verdict.ASK
    assert "secret=api" in decision.reason


@pytest.mark.parametrize(
    "rule",
    [
        "http_request(secret=api)",
        "http_request(secret=api, method=GET)",
        "http_request(secret=api, url=https://api.example.com/*)",
        "scope:system(secret=api)",
    ],
)
def test_a_rule_that_names_it_allows_it(judge: Judge, rule: str) -> None:
    assert judge("http_request", WITH, allow=[rule]).verdict is Verdict.ALLOW
    assert judge("http_request", {"url": URL}, allow=[rule]).verdict is not Verdict.ALLOW
    assert judge("http_request", {**WITH, "secret": "b"}, allow=[rule]).verdict is Verdict.ASK


@pytest.mark.parametrize(
    "rule", ["http_request", "http_request(https://api.example.com/**)", "http_request(secret=api)"]
)
def test_denial_and_question_need_not_name_it(judge: Judge, rule: str) -> None:
    allow = ["http_request(secret=api)"]
    assert judge("http_request", WITH, allow=allow, deny=[rule]).verdict is Verdict.DENY
    assert judge("http_request", WITH, allow=allow, ask=[rule]).verdict is Verdict.ASK


def test_an_approval_remembers_the_secret_the_method_and_the_origin(
    crib: Mapping[str, ToolSpec],
) -> None:
    policy, spec = Policy(), crib["http_request"]
    grant = grant_for(policy, spec, WITH)
    assert grant == "http_request(secret=api, method=GET, url=https://api.example.com/*)"
    for other in (
        {"secret": "b"},
        {"method": "POST"},
        {"url": "https://api.example.com.evil.com/"},
        {"url": "http://api.example.com/"},
        {"url": "https://api.example.com@evil.com/"},
    ):
        assert policy.judge(spec, {**WITH, **other}, grants=[grant]).verdict is Verdict.ASK
    without = grant_for(policy, spec, {"url": URL})
    assert policy.judge(spec, WITH, grants=[without]).verdict is Verdict.ASK


@pytest.mark.parametrize("name", ["*", "a, url=*", "a b", ""])
def test_what_is_no_name_is_not_remembered(crib: Mapping[str, ToolSpec], name: str) -> None:
    assert grant_for(Policy(), crib["http_request"], {**WITH, "secret": name}) == ""
