import json
from collections.abc import Callable
from hashlib import sha256

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from mcp import Client
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, ReadResourceResult, TextResourceContents

from server.mcp.browsing.answers import PAGE_SIZE
from server.mcp.context_text import document_uri
from storage.library import Library
from storage.models import Identity, NewContext

IDENTITY = Identity(user_id="ann")
VIEWS = [
    f"context://{noun}"
    for noun in ("relevant", "documents", "knowledge", "events", "entities", "plans")
]


@pytest.fixture
def server(server_of: Callable[[], Server[None]]) -> Server[None]:
    return server_of()


def _add(  # noqa: PLR0913  # what a test does not say is not what it is about
    library: Library,
    raw_id: str,
    text: str,
    *,
    raw_type: str = "file",
    media_type: str = "text/markdown",
    whose: Identity = IDENTITY,
) -> None:
    library.shelf(whose).add(
        NewContext(
            raw_type=raw_type,
            raw_id=raw_id,
            title=f"About {raw_id}",
            text=text,
            markdown=True,
            media_type=media_type,
            sha256=sha256(text.encode()).hexdigest(),
        )
    )


def _contents(result: ReadResourceResult) -> TextResourceContents:
    (contents,) = result.contents
    assert isinstance(contents, TextResourceContents)
    return contents


async def test_an_empty_library_lists_its_views_which_can_be_read(
    server: Server[None], mode: str
) -> None:
    async with Client(server, mode=mode) as client:
        listing = await client.list_resources()
        texts = [_contents(await client.read_resource(uri)).text for uri in VIEWS]
    assert [resource.uri for resource in listing.resources] == [*VIEWS, "context://index"]
    assert listing.next_cursor is None
    assert texts == [
        "Nothing is stored yet.",
        *(f"# {title}: 0\n" for title in ("Documents", "Knowledge", "Events", "Entities", "Plans")),
    ]


async def test_a_document_is_listed_and_read_at_its_address(
    server: Server[None], library: Library, mode: str
) -> None:
    _add(library, "notes/tea & cake.md", "# Tea\n\nBoil the water.")
    async with Client(server, mode=mode) as client:
        resource = (await client.list_resources()).resources[-1]
        contents = _contents(await client.read_resource(resource.uri))
    assert resource.uri == "context://documents/file/notes%2Ftea%20%26%20cake.md"
    assert resource.title == "About notes/tea & cake.md"
    assert resource.mime_type == contents.mime_type == "text/markdown"
    assert contents.uri == resource.uri
    assert contents.text == "# Tea\n\nBoil the water."


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("text/html", "text/markdown"),
        ("application/pdf", "text/plain"),
        ("text/csv", "text/plain"),
        ("text/plain", "text/plain"),
    ],
)
async def test_a_documents_text_has_its_own_type_and_not_its_sources(
    server: Server[None], library: Library, source: str, shown: str
) -> None:
    _add(library, "a", "Text.", media_type=source)
    async with Client(server) as client:
        contents = _contents(await client.read_resource(document_uri("file", "a")))
    assert contents.mime_type == shown


async def test_the_template_makes_the_address(server: Server[None], mode: str) -> None:
    async with Client(server, mode=mode) as client:
        template, *_ = (await client.list_resource_templates()).resource_templates
    filled = template.uri_template.replace("{raw_type}", "file").replace("{raw_id}", "a.md")
    assert filled == document_uri("file", "a.md")


async def test_pages_follow_their_cursors_and_show_each_document_once(
    server: Server[None], library: Library
) -> None:
    expected = {document_uri("file", f"{number}.md") for number in range(2 * PAGE_SIZE + 1)}
    for number in range(2 * PAGE_SIZE + 1):
        _add(library, f"{number}.md", "Text.")
    pages: list[list[str]] = []
    cursor = None
    async with Client(server) as client:
        while cursor is not None or not pages:
            listing = await client.list_resources(cursor=cursor)
            pages.append([resource.uri for resource in listing.resources])
            cursor = listing.next_cursor
    assert [len(page) for page in pages] == [PAGE_SIZE, PAGE_SIZE, len(VIEWS) + 2]
    shown = [uri for page in pages for uri in page]
    assert len(shown) == len(set(shown))
    assert set(shown) == {"context://index", *VIEWS, *expected}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cursor=st.text() | st.from_regex(r"[A-Za-z0-9_-]*={0,2}", fullmatch=True))
async def test_a_cursor_that_nobody_gave_out_is_invalid(server: Server[None], cursor: str) -> None:
    async with Client(server) as client:
        with pytest.raises(MCPError, match="cursor") as caught:
            await client.list_resources(cursor=cursor)
    assert caught.value.code == INVALID_PARAMS


@pytest.mark.parametrize(
    "uri",
    [
        *("context://documents/file/missing.md", "context://documents/file/"),
        *("context://documents//a.md", "context://documents/file", "context://documents/file/%ff"),
        *("context://documents/", "context://documents?page=0", "context://documents?page=2"),
        *("context://documents?page=x", "context://contexts", "context://contexts/missing"),
        *("context://entities/Nobody", "context://plans/none", "context://plans/"),
        *("context://plans?page=2", "context://time/2026-13", "context://time/2026-W60"),
        *("context://time/2026-11-22T09:30:00Z", "context://time/yesterday"),
        *("context://relevant/tea", "context://relevant?topic=%ff", "context://other"),
        *("file:///etc/passwd", "", "context://documents/file/" + "x" * 10_000),
    ],
)
async def test_an_unknown_address_is_not_found_in_the_words_of_its_era(
    server: Server[None], library: Library, mode: str, uri: str
) -> None:
    _add(library, "a.md", "Text.")
    async with Client(server, mode=mode) as client:
        with pytest.raises(MCPError, match="Resource not found") as caught:
            await client.read_resource(uri)
    assert caught.value.code == (-32002 if mode == "legacy" else INVALID_PARAMS)
    assert caught.value.data == {"uri": uri}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(raw_type=st.text(min_size=1, max_size=20), raw_id=st.text(min_size=1, max_size=50))
async def test_any_source_is_read_at_its_address(
    server: Server[None], library: Library, raw_type: str, raw_id: str
) -> None:
    assume("\0" not in raw_type + raw_id)
    _add(library, raw_id, "Here it is.", raw_type=raw_type)
    async with Client(server) as client:
        contents = _contents(await client.read_resource(document_uri(raw_type, raw_id)))
    assert contents.text == "Here it is."


async def test_another_users_documents_are_neither_listed_nor_read(
    server: Server[None], library: Library, mode: str
) -> None:
    _add(library, "secret.md", "Hers.", whose=Identity(user_id="eve"))
    async with Client(server, mode=mode) as client:
        assert len((await client.list_resources()).resources) == 7
        with pytest.raises(MCPError, match="Resource not found"):
            await client.read_resource(document_uri("file", "secret.md"))


async def test_the_index_tells_how_much_can_be_found_by_meaning(
    server: Server[None], library: Library, mode: str
) -> None:
    _add(library, "a.md", "Text.")
    async with Client(server, mode=mode) as client:
        contents = _contents(await client.read_resource("context://index"))
    assert contents.mime_type == "application/json"
    assert json.loads(contents.text) == {
        "total": 1,
        "embedded": 0,
        "complete": False,
        "problem": "",
        "next_embedded": None,
        "rough": 0,
    }


async def test_a_storage_that_is_gone_is_an_internal_error_without_details(
    server: Server[None], library: Library, mode: str
) -> None:
    library.database.close()
    (library.directory / "toolcrib.db").unlink()
    async with Client(server, mode=mode) as client:
        with pytest.raises(MCPError) as caught:
            await client.list_resources()
    assert caught.value.code == INTERNAL_ERROR
    assert "sqlite" not in str(caught.value).lower()
