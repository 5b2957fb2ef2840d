import pytest

from tools.sandbox.web.reading import read_page

URL = "https://pond.example/herons"
WORDS = "The heron stands in the water and waits, and the fish swims by, unaware of it. "


def test_links_are_resolved_against_the_page() -> None:
    html = f"<html><title>T</title><article><p>{WORDS * 5}<a href='../x?y'>more</a></p></article>"
    assert "[more](https://pond.example/x?y)" in read_page(html, URL).text


@pytest.mark.parametrize(
    "html",
    [
        *("words alone", "<p>words alone", "<html><body>words alone</body></html>"),
        *("<table><tr><td>words alone</td></tr></table>", "<div>" * 3_000 + "words alone"),
        "<!-- " + "<p>words</p>" * 10 + " --><p>words alone</p>",
        "<html><title>x</title><noscript>words alone</noscript></html>",
    ],
)
def test_whatever_words_there_are_are_kept(html: str) -> None:
    assert "words alone" in read_page(html, URL).text


def test_a_date_is_only_what_the_page_declares() -> None:
    declared = '<meta property="article:published_time" content="2026-03-04">'
    page = "<html><head>{}<title>T</title></head><body><p>On 1 May 2020, {}</p></body></html>"
    assert read_page(page.format(declared, WORDS * 5), URL).date == "2026-03-04"


def test_a_page_of_nothing_has_no_text() -> None:
    assert read_page("<html><script>1</script></html>", URL).text == ""
