from __future__ import annotations

import pytest

from tools.sandbox.web.site import is_same_site
from tools.sandbox.web.url import Url


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ("https://a.com/b", "https://a.com/c"),
        ("https://a.com", "https://www.a.com"),
        ("https://www.a.com", "https://a.com"),
        ("http://a.com", "https://a.com"),
        ("http://a.com", "https://www.a.com"),
        ("http://a.com:8080", "http://a.com:8080/b"),
    ],
)
def test_a_site_is_one_server_with_or_without_www(here: str, there: str) -> None:
    assert is_same_site(Url.parse(here), Url.parse(there))


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ("https://a.com", "http://a.com"),
        ("https://a.com", "https://b.com"),
        ("https://a.com", "https://b.a.com"),
        ("https://b.a.com", "https://a.com"),
        ("https://a.com", "https://a.com.b.com"),
        ("https://a.com", "https://a.com:8443"),
        ("http://a.com:8080", "https://a.com"),
        ("http://a.com", "https://a.com:8443"),
        ("http://a.com", "http://a.com:443"),
        ("https://a.com", "https://wwwa.com"),
        ("https://a.com", "https://www.www.b.com"),
    ],
)
def test_anything_else_is_another(here: str, there: str) -> None:
    assert not is_same_site(Url.parse(here), Url.parse(there))
