"""Rules about URLs mean one origin and path, and name the secrets that requests may use."""

import contextlib
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.core.spec import ToolSpec
from tools.policy.calls import Decision, Verdict
from tools.policy.paths import Address
from tools.policy.policy import Policy
from tools.policy.suggested_rules import grant_for

Judge = Callable[..., Decision]
API = "https://api.example.com/**"
V1 = "https://api.example.com/v1/**"

ALLOWED = [
    (API, "https://api.example.com"),
    (API, "https://api.example.com/"),
    (API, "https://api.example.com/a/b?c=d#e"),
    (API, "https://api.example.com:443/a"),
    (API, "HTTPS://API.Example.COM/a"),
    (API, "https://api.example.com/a%20b"),
    (V1, "https://api.example.com/v1/"),
    (V1, "https://api.example.com/v1"),
    (V1, "https://api.example.com/v1/a/b"),
    (V1, "https://api.example.com/%761/a"),
    (V1, "https://api.example.com/v1/%7Ea"),
    ("https://api.example.com/v1/*/x", "https://api.example.com/v1/a/x"),
    ("https://api.example.com/v1/*.json", "https://api.example.com/v1/a.json?b=/c"),
    ("https://api.example.com/**/x", "https://api.example.com/a/b/x"),
    ("https://api.example.com/x", "https://api.example.com/x?y=z"),
    ("https://api.example.com", "https://api.example.com/"),
    ("https://api.example.com:8443/**", "https://api.example.com:8443/x"),
    ("http://localhost:8000/**", "http://localhost:8000/x"),
    ("https://*.example.com/**", "https://a.example.com/x"),
    ("https://*.example.com/**", "https://a.b.example.com/x"),
    ("https://*/**", "https://anything.org/x"),
    ("https://bücher.example/**", "https://xn--bcher-kva.example/x"),
    ("https://xn--bcher-kva.example/**", "https://bücher.example/x"),
    ("https://[2606:4700::1111]/**", "https://[2606:4700:0:0::1111]/x"),
    ("GET https://api.example.com/**", "https://api.example.com/x"),
    ("POST,GET https://api.example.com/**", "https://api.example.com/x"),
]


@pytest.mark.parametrize(("rule", "url"), ALLOWED)
def test_a_rule_allows_the_url_that_it_means(rule: str, url: str, judge: Judge) -> None:
    decision = judge("http_request", {"url": url}, allow=[f"http_request({rule})"])
    assert decision.verdict is Verdict.ALLOW, decision


def naive(rule: str, url: str) -> bool:
    """What a matcher of prefixes, or of substrings, finds of an allowed URL."""
    prefix = rule.removesuffix("/**").removesuffix("**")
    return url.startswith(prefix) or prefix.partition("://")[2] in url


DECEIVING = [
    (API, "https://api.example.com.evil.org/"),
    (API, "https://api.example.com@evil.org/"),
    (API, "https://api.example.com:x@evil.org/"),
    (API, "https://api.example.com:443@evil.org/"),
    (API, "https://user@api.example.com/"),
    (API, "https://evil.org/?https://api.example.com/"),
    (API, "https://evil.org/https://api.example.com/"),
    (API, "https://evil.org/#https://api.example.com/"),
    (API, "https://evil.org#@api.example.com/"),
    (API, "https://evil.org?@api.example.com/"),
    (API, "https://evil.org\\@api.example.com/"),
    (API, "https://evil.org\\.api.example.com/"),
    (API, "https://api.example.com\\.evil.org/"),
    (API, "https://api.example.com\\@evil.org/"),
    (API, "https:\\\\api.example.com/"),
    (API, "https:/api.example.com/"),
    (API, "https:///api.example.com/"),
    (API, "https:api.example.com/"),
    (API, "//api.example.com/"),
    (API, "api.example.com/"),
    (API, "http://api.example.com/"),
    (API, "ftp://api.example.com/"),
    (API, "file://api.example.com/"),
    (API, "javascript://api.example.com/%0aalert(1)"),
    (API, "https://api.example.com:444/"),
    (API, "https://api.example.com:80/"),
    (API, "https://api.example.com:0443/"),
    (API, "https://api.example.com:/"),
    (API, "https://api.example.com:-1/"),
    (API, "https://api.example.com:99999/"),
    (API, "https://api.example.com./"),
    (API, "https://api.example.com../"),
    (API, "https://.api.example.com/"),
    (API, "https://xapi.example.com/"),
    (API, "https://a.api.example.com/"),
    (API, "https://example.com/"),
    (API, "https://api.example.co/"),
    (API, "https://api.example.comx/"),
    (API, "https://api.example.com%2eevil.org/"),
    (API, "https://api.example.com%00.evil.org/"),
    (API, "https://api%2eexample.com/"),
    (API, "https://api.example\u3002com/"),
    (API, "https://\uff41pi.example.com/"),
    (API, "https://api.ex\u0430mple.com/"),
    (API, "https://api.example.com\u200b/"),
    (API, "https://api.exa\u00admple.com/"),
    (API, " https://api.example.com/"),
    (API, "https://api.example.com/ "),
    (API, "https://api.example.com/\t"),
    (API, "https://api.example.com\t.evil.org/"),
    (API, "https://api.example.com\n.evil.org/"),
    (API, "https://api.example.com/\r\nHost: evil.org"),
    (API, "https://api.example.com/\x00"),
    (API, "https://api.example.com/\x7f"),
    (API, "https://api.example.com\u3000/"),
    (API, "https://[api.example.com]/"),
    (API, "https://api.example.com]/"),
    (API, ""),
    (V1, "https://api.example.com/v1/../admin"),
    (V1, "https://api.example.com/v1/%2e%2e/admin"),
    (V1, "https://api.example.com/v1/.%2E/admin"),
    (V1, "https://api.example.com/v1/..%2fadmin"),
    (V1, "https://api.example.com/v1/%2e%2e%2fadmin"),
    (V1, "https://api.example.com/v1/..%5cadmin"),
    (V1, "https://api.example.com/v1/%252e%252e/admin"),
    (V1, "https://api.example.com/v1/..;/admin"),
    (V1, "https://api.example.com/v1/.;x/admin"),
    (V1, "https://api.example.com/v1%2fx"),
    (V1, "https://api.example.com/v1/%00"),
    (V1, "https://api.example.com/v1/%zz"),
    (V1, "https://api.example.com/v10/x"),
    (V1, "https://api.example.com/V1/x"),
    (V1, "https://api.example.com/x/v1/y"),
    (V1, "https://api.example.com//v1/y"),
    (V1, "https://api.example.com/x?/v1/y"),
    ("https://api.example.com/v1/*", "https://api.example.com/v1/a/b"),
    ("https://api.example.com/v1/*", "https://api.example.com/v1"),
    ("https://api.example.com/v1", "https://api.example.com/v1/a"),
    ("https://api.example.com", "https://api.example.com/a"),
    ("https://*.example.com/**", "https://example.com/"),
    ("https://*.example.com/**", "https://badexample.com/"),
    ("https://*.example.com/**", "https://a.example.com.evil.org/"),
    ("https://*.example.com/**", "https://evil.org/a.example.com/"),
    ("https://127.0.0.1/**", "https://127.1/"),
    ("https://127.0.0.1/**", "https://0177.0.0.1/"),
    ("https://127.0.0.1/**", "https://2130706433/"),
    ("https://127.0.0.1/**", "https://0x7f000001/"),
    ("https://[::1]/**", "https://[::1%25eth0]/"),
    ("https://[::1]/**", "https://::1/"),
    ("POST https://api.example.com/**", "https://api.example.com/x"),
]


@pytest.mark.parametrize(("rule", "url"), DECEIVING)
def test_a_rule_allows_no_url_that_only_looks_like_it(rule: str, url: str, judge: Judge) -> None:
    rule = f"http_request({rule})"
    assert judge("http_request", {"url": url}, allow=[rule]).verdict is Verdict.ASK
    assert judge("http_request", {"url": url}, grants=(rule,)).verdict is Verdict.ASK


def test_many_of_these_deceive_a_matcher_of_texts() -> None:
    assert sum(naive(rule, url) for rule, url in DECEIVING) > 40


DENIED = [
    ("https://evil.org", "https://evil.org/"),
    ("https://evil.org", "https://evil.org/a/b"),
    ("https://evil.org/a", "https://evil.org/a/b"),
    ("https://evil.org/a", "https://evil.org//a/b"),
    ("https://evil.org/a", "https://evil.org/A"),
    ("https://evil.org/a", "https://evil.org/%61"),
    ("https://evil.org/**", "https://EVIL.org/x"),
    ("https://evil.org/**", "https://evil.org:443/x"),
    ("https://*.evil.org/**", "https://a.evil.org/x"),
    ("DELETE https://evil.org/**", "https://evil.org/x"),
]


@pytest.mark.parametrize(("rule", "url"), DENIED)
def test_a_denied_url_is_denied_with_all_beneath_it(rule: str, url: str, judge: Judge) -> None:
    call = {"url": url, "method": "DELETE"}
    decision = judge("http_request", call, allow=["*"], deny=[f"http_request({rule})"])
    assert decision.verdict is Verdict.DENY


@pytest.mark.parametrize(
    "url",
    [
        *("https://evil.org./", "https://evil.org\\/", "https://evil\u3002org/"),
        *("https://x@evil.org/", "https://evil.org/a/..%2fb", "https://evil.org\t/"),
        *("https:/evil.org", ""),
    ],
)
def test_an_odd_url_asks_where_any_is_denied(url: str, judge: Judge) -> None:
    rules = {"allow": ["*"], "deny": ["http_request(https://evil.org/**)"]}
    assert judge("http_request", {"url": url}, **rules).verdict is Verdict.ASK


@pytest.mark.parametrize(
    ("method", "verdict"), [("GET", "allow"), ("get", "allow"), ("POST", "ask"), ("DELETE", "deny")]
)
def test_methods_are_told_apart(method: str, verdict: str, judge: Judge) -> None:
    rules = {
        "allow": ["http_request(GET,HEAD https://a.org/**)"],
        "deny": ["http_request(DELETE https://a.org/**)"],
    }
    call = {"url": "https://a.org/x", "method": method}
    assert judge("http_request", call, **rules).verdict == verdict


def test_a_tool_without_methods_gets(judge: Judge) -> None:
    rules = {"allow": ["read_web_page(GET https://a.org/**)"]}
    assert judge("read_web_page", {"url": "https://a.org/x"}, **rules).verdict is Verdict.ALLOW


@given(st.text(max_size=40))
def test_any_text_is_an_address_or_refused(text: str) -> None:
    for url in (text, f"https://{text}", f"https://a.org/{text}"):
        with contextlib.suppress(ValueError):
            assert Address.parse(url).scheme in {"http", "https"}


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
