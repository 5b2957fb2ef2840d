import unicodedata
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.core.errors import InvalidArgumentsError
from tools.sandbox.web.url import MAX_URL, Url

SCHEMES = """
file ftp ftps gopher dict ldap ldaps tftp sftp ssh telnet smtp imap pop3 ws wss data javascript
blob jar netdoc mailto news nntp view-source php phar expect glob zip ogg unix http+unix httpx
https+x h2 ttp xhttp rtsp rtmp git svn smb nfs redis mongodb about chrome chrome-extension cid mid
""".split()  # noqa: SIM905  # a list of names reads best as text

CONTROLS = [chr(code) for code in (*range(0x21), 0x7F, *range(0x80, 0xA1))]
HIDDEN = list(
    "\u00ad\u061c\u1680\u180e\u200b\u200e\u2028\u2029\u202e\u2060\u2066\u3000\ufeff\ufff9"
)
PLACES = [
    *("{}http://example.com/", "h{}ttp://example.com/", "http{}://example.com/"),
    *("http:{}//example.com/", "http:/{}/example.com/", "http://{}example.com/"),
    *("http://exam{}ple.com/", "http://example.com{}/", "http://example.com:8{}0/"),
    *("http://example.com:80{}/", "http://example.com/{}", "http://example.com/a{}b"),
    *("http://example.com/?a={}b", "http://example.com/#{}"),
]

SHAPES = [
    *("", " ", "/", "//", "///", "example.com", "//example.com/", "/etc/passwd", "?a", "#a"),
    *("http:", "http:/", "http://", "http:///", "http:///example.com", "http:example.com"),
    *("http:/example.com", "http:////example.com", "https:\\\\example.com", "http:/\\example.com"),
    *("http://example.com\\@127.0.0.1/", "http://127.0.0.1\\.example.com/", "http://\\127.0.0.1"),
    *("http://:80/", "http://:@/", "http://@/", "http://?a", "http://#a", "http://example.com:/"),
    *("http://example.com:port/", "http://example.com:80:80/", "http://example.com:0/"),
    *("http://example.com:65536/", "http://example.com:-80/", "http://example.com:080/"),
    *("http://a.com/../b", "http://a.com/./b", "http://a.com/b/..", "http://a.com/."),
    *("http://a/..", "http://a.com/%2e%2e/b", "http://a.com/.%2E/b", "http://a.com/%2e/b"),
    *("http://a.com/b/%2E", "http://[::1", "http://::1/", "http://[::1]x/", "http://[::1]:/"),
    *("http://x[::1]/", "http://[fe80::1%25eth0]/", "http://[fe80::1%eth0]:80/"),
    *("url:http://a.com", "http;//a.com", "http://a.com/" + "a" * MAX_URL),
]

USER_INFORMATION = [
    *("a@b.com", "a:b@c.com", ":@b.com", "@b.com", "a@b@c.com", "b.com@127.0.0.1", "%40@b.com"),
    *("a:80@b.com:80", "[::1]@b.com", "b.com:80@127.0.0.1", "a%3Ab@c.com", "b.com%00@127.0.0.1"),
]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_any_other_scheme_is_refused(scheme: str) -> None:
    for text in (f"{scheme}://example.com/", f"{scheme}:example.com", f"{scheme.upper()}://e.com"):
        with pytest.raises(InvalidArgumentsError, match="http"):
            Url.parse(text)


@pytest.mark.parametrize("place", PLACES)
def test_a_control_space_or_hidden_character_is_refused_anywhere(place: str) -> None:
    for odd in CONTROLS + HIDDEN:
        with pytest.raises(InvalidArgumentsError):
            Url.parse(place.format(odd))


def test_the_standard_library_takes_many_of_them() -> None:
    texts = [place.format(odd) for place in PLACES for odd in CONTROLS + HIDDEN]
    taken = [text for text in texts if urlsplit(text).hostname == "example.com"]
    assert len(texts) > 1000
    assert len(taken) > 500


@pytest.mark.parametrize("text", SHAPES)
def test_what_is_no_plain_url_is_refused_with_what_to_do(text: str) -> None:
    with pytest.raises(InvalidArgumentsError) as caught:
        Url.parse(text)
    assert caught.value.next_actions


@pytest.mark.parametrize("authority", USER_INFORMATION)
def test_user_information_is_refused_and_not_repeated(authority: str) -> None:
    with pytest.raises(InvalidArgumentsError, match="user information") as caught:
        Url.parse(f"https://{authority}/")
    assert f"//{authority}" not in caught.value.message or authority.startswith("@")


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("HTTP://Example.COM", "http://example.com/"),
        ("http://example.com:80/a", "http://example.com/a"),
        ("https://example.com:443?b", "https://example.com/?b"),
        ("https://example.com:80/", "https://example.com:80/"),
        ("http://example.com/a#fragment", "http://example.com/a"),
        ("http://example.com/ä?ü=€", "http://example.com/%C3%A4?%C3%BC=%E2%82%AC"),
        ("http://example.com/a%20b%2Fc?d=%26&e", "http://example.com/a%20b%2Fc?d=%26&e"),
        ("http://example.com/a//b;c=1,2/.../..a", "http://example.com/a//b;c=1,2/.../..a"),
        ('http://example.com/"<>^`{}', "http://example.com/%22%3C%3E%5E%60%7B%7D"),
        ("http://[2606:4700:0::1]:8080/", "http://[2606:4700::1]:8080/"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://8.8.8.8/", "http://8.8.8.8/"),
    ],
)
def test_a_url_has_one_spelling(text: str, canonical: str) -> None:
    assert str(Url.parse(text)) == canonical
    assert str(Url.parse(canonical)) == canonical


@pytest.mark.parametrize(
    ("reference", "leads_to"),
    [
        ("/b", "https://a.com:8443/b"),
        ("b", "https://a.com:8443/x/b"),
        ("../b", "https://a.com:8443/b"),
        ("?b", "https://a.com:8443/x/y?b"),
        ("//b.com/c", "https://b.com/c"),
        ("http://b.com", "http://b.com/"),
        ("#b", "https://a.com:8443/x/y"),
    ],
)
def test_a_reference_leads_on_from_where_it_stands(reference: str, leads_to: str) -> None:
    assert str(Url.parse("https://a.com:8443/x/y").join(reference)) == leads_to


@pytest.mark.parametrize(
    "reference", ["ftp://b.com", "//a@b.com", "/a\r\nX: y", "javascript:1", "//127.1/", "/\\b.com"]
)
def test_a_reference_is_read_as_strictly(reference: str) -> None:
    with pytest.raises(InvalidArgumentsError):
        Url.parse("https://a.com/").join(reference)


def test_an_origin_is_scheme_host_and_port() -> None:
    urls = ["http://a.com", "https://a.com", "http://b.com", "http://a.com:81", "http://a.com:443"]
    assert len({Url.parse(url).origin for url in urls}) == len(urls)
    assert Url.parse("http://a.com:80/b").origin == Url.parse("HTTP://A.com/c").origin


@given(st.text(max_size=60), st.sampled_from(["{}", "http://{}", "http://a.com{}", "https://a/{}"]))
def test_any_text_is_a_url_of_one_spelling_or_refused(text: str, shape: str) -> None:
    try:
        url = Url.parse(shape.format(text))
    except InvalidArgumentsError:
        return
    written = str(url)
    assert Url.parse(written) == url
    assert written.isascii()
    assert not any(unicodedata.category(each)[0] in "CZ" for each in written)
    assert (urlsplit(written).hostname, urlsplit(written).username) == (url.host, None)


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
    assert Url.parse(here).is_same_site(Url.parse(there))


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
def test_anything_else_is_another_site(here: str, there: str) -> None:
    assert not Url.parse(here).is_same_site(Url.parse(there))
