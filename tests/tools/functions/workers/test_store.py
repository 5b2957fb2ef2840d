"""Functions with the stored context: real workers beside the library of a server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from storage.index.embedders.base import EmbedderOptions
from storage.models import ContextType, Identity, NewContext, SearchFilter
from tools.core.context import Origin, RequestContext
from tools.functions.workers.store import StoreOptions, store_of

if TYPE_CHECKING:
    from tests.tools.functions.conftest import Serve

CRAFTS = """
    import os

    from storage.models import ContextType, NewContext, SearchFilter
    from tools.authoring import RequestContext, resource, tool

    @tool(scope="context", effects={"read"})
    def find(query: str, context: RequestContext, whose: str | None = None) -> list[str]:
        found = context.shelf(user_id=whose).search(query, SearchFilter(), 5)
        return [hit.context.title for hit in found.hits]

    @tool(scope="context", effects={"read"})
    def read(name: str, context: RequestContext) -> str:
        return context.shelf().get(name)[0].title

    @tool(scope="context", effects={"write"}, destructive=False)
    async def keep(text: str, context: RequestContext) -> None:
        new = NewContext(context_type=ContextType.KNOWLEDGE, title=text, text=text)
        context.shelf().add(new)

    @tool(scope="context")
    async def keep_and_die(text: str, context: RequestContext) -> None:
        await keep(text, context)
        os._exit(3)

    @tool
    def peek(context: RequestContext) -> str:
        return context.shelf().identity.user_id
"""

STORE = StoreOptions(
    directory=Path("/data"),
    embedder=EmbedderOptions(kind="openai", api_key="key", folder=Path("/model")),
    chroma_url="",
    private=("127.0.0.1:1",),
    proxy="",
    alpha=0.5,
    max_document_bytes=1,
)


def knowledge(text: str) -> NewContext:
    return NewContext(context_type=ContextType.KNOWLEDGE, title=text, text=text)


@pytest.mark.slow
async def test_a_function_finds_what_the_server_stored_and_stores_for_its_caller(
    serve: Serve,
) -> None:
    async with serve(CRAFTS, may_store=True) as served:
        served.library.shelf(Identity("ann")).add(knowledge("the saw is in the shed"))
        ann, bob = RequestContext(Origin(Identity("ann"))), RequestContext(Origin(Identity("bob")))
        found = await served.manager.execute("find", {"query": "saw"}, ann)
        assert found.structured == {"result": ["the saw is in the shed"]}, found.text
        found = await served.manager.execute("find", {"query": "saw"}, bob)
        assert found.structured == {"result": []}, found.text
        await served.manager.execute("keep", {"text": "the plane is blunt"}, bob)
        hits = served.library.shelf(Identity("bob")).search("plane", SearchFilter(), 5).hits
        assert [hit.context.title for hit in hits] == ["the plane is blunt"]
        failed = await served.manager.execute("read", {"name": "f" * 32}, ann)
        assert failed.structured["error_type"] == "not_found"


@pytest.mark.slow
async def test_only_a_call_that_is_not_bound_names_another(serve: Serve) -> None:
    async with serve(CRAFTS, may_store=True) as served:
        served.library.shelf(Identity("ann")).add(knowledge("the saw is in the shed"))
        asked = {"query": "saw", "whose": "ann"}
        for bound in (False, True):
            context = RequestContext(Origin(Identity("bob"), bound=bound))
            found = await served.manager.execute("find", asked, context)
            assert found.is_error == bound, found.text
        assert found.structured["error_type"] == "permission_denied"


@pytest.mark.slow
async def test_what_a_function_stored_outlives_its_process(serve: Serve) -> None:
    async with serve(CRAFTS, may_store=True) as served:
        ended = await served.error("keep_and_die", text="the plane is blunt")
        assert ended[0] == "tool_failed"
        assert await served.value("find", query="plane") == ["the plane is blunt"]


@pytest.mark.slow
async def test_a_function_of_another_scope_is_given_no_stored_context(serve: Serve) -> None:
    async with serve(CRAFTS, may_store=True) as served:
        assert (await served.error("peek"))[0] == "permission_denied"


@pytest.mark.slow
async def test_a_file_that_the_settings_do_not_name_is_told_the_line_to_write(serve: Serve) -> None:
    async with serve(CRAFTS) as served:
        assert served.names == ["peek"]
        line = f"context = [{json.dumps(str(served.folder / 'crafts.py'))}] under [functions]"
        assert len(served.files.problems) == 4
        assert all(line in problem for problem in served.files.problems)


@pytest.mark.slow
async def test_a_package_that_hides_ours_is_named(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "functions" / "storage").mkdir()
    (tmp_path / "functions" / "storage" / "__init__.py").write_text("")
    source = '__tool_options__ = {"scope": "context"}\ndef f(x: int) -> int: return x'
    async with serve(source, may_store=True) as served:
        (problem,) = served.files.problems
        assert "Your own 'storage' hides Toolcrib's" in problem


def test_a_file_with_an_interpreter_of_its_own_is_given_none() -> None:
    file = Path("/crafts.py")
    store, why = store_of(file, {file: STORE}, Path("/environments/1/bin/python"))
    assert store is None
    assert "leave out the dependencies" in why


def test_how_the_store_is_opened_survives_being_sent() -> None:
    assert StoreOptions.decode(json.loads(json.dumps(STORE.encode()))) == STORE
