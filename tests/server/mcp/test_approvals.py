"""Calls that a person approves: at the client in both eras, or on the command line."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    closing,
)
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CallToolResult,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitResult,
    InputRequiredResult,
    TextContent,
)
from pydantic import SecretStr

from server.mcp.approvals import COMMAND_LINE, StoredApprovals
from server.mcp.elicitation.forms import choices_of
from server.mcp.protocol import build_server
from server.mcp.sessions import ClientRequests, Sessions
from server.mcp.surface import FULL, Surface
from storage.approvals import ApprovalStore
from storage.index.embedders.bundled import MiniLMEmbedder
from storage.library import Library
from storage.models import Identity
from tests.conftest import told
from tests.people import Person, answered, round_of
from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.client import Consent, Prompt, Question, Reply, digest_of
from tools.core.context import RequestContext
from tools.core.errors import ApprovalRequiredError, PermissionDeniedError
from tools.core.manager import SandboxToolManager
from tools.core.permission import Permissions
from tools.core.registry import ToolRegistry
from tools.core.spec import Confirmation, Effect, ToolScope, tool
from tools.policy.policy import Policy
from tools.sandbox.files.sandbox import Sandbox

ANN = Identity(user_id="ann")
ONCE = ElicitResult(action="accept", content={"answer": "once"})


@dataclass
class Shop:
    """A server with one tool that a person has to confirm, and what it sold."""

    server: Server[Any]
    store: ApprovalStore
    sold: list[str]

    @asynccontextmanager
    async def visited(self, mode: str, person: Any, **more: Any) -> AsyncIterator[Client]:
        async with Client(self.server, mode=mode, elicitation_callback=person, **more) as client:
            yield client


OpenShop = Callable[..., AbstractAsyncContextManager[Shop]]


@pytest.fixture
def open_shop(tmp_path: Path) -> OpenShop:
    @asynccontextmanager
    async def open_shop(wait: float = 0.0, expire: float = 600.0) -> AsyncIterator[Shop]:
        sold: list[str] = []

        @tool(scope=ToolScope.SANDBOXED, effects={Effect.WRITE}, confirmation=Confirmation.REQUIRED)
        def sell(thing: str, count: int = 1) -> str:
            """Sells something."""
            sold.append(thing)
            return f"{count} {thing}"

        @tool(scope=ToolScope.SANDBOXED, effects={Effect.WRITE}, confirmation=Confirmation.REQUIRED)
        async def advertise(context: RequestContext, thing: str) -> str:
            """Has the client's model praise something."""
            assert context.sampler is not None
            (reply,) = await context.sampler.ask([Prompt("Praise.", thing, 100)], state="praising")
            sold.append(thing)
            return reply.text if isinstance(reply, Reply) else "?"

        @tool(scope=ToolScope.SANDBOXED, effects={Effect.WRITE}, confirmation=Confirmation.REQUIRED)
        def pay(card: SecretStr) -> str:
            """Pays."""
            sold.append(card.get_secret_value())
            return "paid"

        library = Library(tmp_path / "data", MiniLMEmbedder())
        store = ApprovalStore(library.database)
        approvals = StoredApprovals(
            store,
            root=str(tmp_path),
            command="toolcrib approvals",
            wait=wait,
            expire=expire,
            grant=3_600,
        )
        registry = ToolRegistry()
        for function in (sell, advertise, pay):
            registry.add(FunctionToMCP.convert(function))
        policy = Policy("standard")
        manager = SandboxToolManager(
            registry,
            sandbox=Sandbox(tmp_path),
            library=library,
            permissions=Permissions(lambda: policy, lambda: approvals),
        )
        requests = ClientRequests(Sessions(), ANN)
        server = build_server(
            registry,
            manager,
            name="shop",
            version="1",
            instructions="",
            surface=Surface([FULL]),
            browsing=None,
            requests=requests,
            ready=anyio.lowlevel.checkpoint,
        )
        yield Shop(server, store, sold)
        library.close()

    return open_shop


def error_type(result: CallToolResult) -> str:
    assert result.is_error, result.content
    return told(result).partition(":")[0]


async def test_a_call_that_the_person_allows_is_run_once(open_shop: OpenShop, mode: str) -> None:
    person = Person()
    async with open_shop() as shop, shop.visited(mode, person) as client:
        result = await client.call_tool("sell", {"thing": "a lathe"})
    assert not result.is_error, result.content
    assert shop.sold == ["a lathe"]
    assert len(person.asked) == 1
    assert "sell" in person.asked[0].message
    assert "a lathe" in person.asked[0].message


async def test_the_same_call_asks_again(open_shop: OpenShop, mode: str) -> None:
    person = Person()
    async with open_shop() as shop, shop.visited(mode, person) as client:
        for _ in range(2):
            await client.call_tool("sell", {"thing": "a lathe"})
    assert shop.sold == ["a lathe"] * 2
    assert len(person.asked) == 2


@pytest.mark.parametrize(
    ("action", "answer", "error"),
    [
        ("accept", "no", "permission_denied"),
        ("decline", None, "permission_denied"),
        ("cancel", None, "approval_required"),
        ("accept", None, "approval_required"),
        ("accept", "yes", "approval_required"),
        ("accept", "ONCE", "approval_required"),
        ("accept", "for_program", "approval_required"),
        ("accept", "for_program_wider", "approval_required"),
        ("accept", "no_more", "approval_required"),
        ("accept", True, "approval_required"),
        ("accept", 1, "approval_required"),
    ],
)
async def test_anything_but_a_clear_yes_runs_nothing(
    open_shop: OpenShop, mode: str, action: str, answer: Any, error: str
) -> None:
    person = Person(answer, action=action)
    async with open_shop() as shop, shop.visited(mode, person) as client:
        result = await client.call_tool("sell", {"thing": "a lathe"})
    assert error_type(result) == error
    assert shop.sold == []


async def test_without_a_way_to_ask_nothing_runs_and_the_answer_says_what_to_do(
    open_shop: OpenShop, mode: str
) -> None:
    async with open_shop() as shop, shop.visited(mode, None) as client:
        result = await client.call_tool("sell", {"thing": "a lathe"})
        (question,) = shop.store.waiting()
    assert error_type(result) == "approval_required"
    assert f"toolcrib approvals approve {question.ticket[:8]}" in told(result)
    assert shop.sold == []


async def test_what_is_approved_on_the_command_line_is_run_at_the_next_call_and_once(
    open_shop: OpenShop, mode: str
) -> None:
    async with open_shop() as shop, shop.visited(mode, None) as client:
        await client.call_tool("sell", {"thing": "a lathe"})
        (question,) = shop.store.waiting()
        assert shop.store.answer(question.ticket, approved=True, by="command line")
        other = await client.call_tool("sell", {"thing": "a lathe", "count": 2})
        assert error_type(other) == "approval_required"
        assert not (await client.call_tool("sell", {"thing": "a lathe"})).is_error
        again = await client.call_tool("sell", {"thing": "a lathe"})
        assert error_type(again) == "approval_required"
    assert shop.sold == ["a lathe"]


async def test_a_call_waits_while_the_list_of_questions_is_open(open_shop: OpenShop) -> None:
    async with (
        open_shop(wait=60) as shop,
        shop.visited("legacy", None) as client,
        anyio.create_task_group() as group,
    ):
        shop.store.watch("somebody")

        async def answer() -> None:
            while not (waiting := shop.store.waiting()):  # another process would tell no event
                await anyio.lowlevel.checkpoint()
            shop.store.answer(waiting[0].ticket, approved=True, by="command line")

        group.start_soon(answer)
        with anyio.fail_after(30):
            result = await client.call_tool("sell", {"thing": "a lathe"})
    assert not result.is_error, result.content
    assert shop.sold == ["a lathe"]


async def test_an_answer_on_the_command_line_ends_the_question_at_the_client(
    open_shop: OpenShop,
) -> None:
    async def never(context: Any, params: Any) -> ElicitResult:
        await anyio.sleep_forever()
        raise AssertionError

    async with (
        open_shop() as shop,
        shop.visited("legacy", never) as client,
        anyio.create_task_group() as group,
    ):

        async def answer() -> None:
            while not (waiting := shop.store.waiting()):  # another process would tell no event
                await anyio.lowlevel.checkpoint()
            shop.store.answer(waiting[0].ticket, approved=True, by="command line")

        group.start_soon(answer)
        with anyio.fail_after(30):
            result = await client.call_tool("sell", {"thing": "a lathe"})
    assert not result.is_error, result.content


async def test_a_question_that_is_denied_on_the_command_line_is_a_no(open_shop: OpenShop) -> None:
    async with open_shop() as shop, shop.visited("2026-07-28", None) as client:
        await client.call_tool("sell", {"thing": "a lathe"})
        (question,) = shop.store.waiting()
        shop.store.answer(question.ticket, approved=False, by="command line")
        assert error_type(await client.call_tool("sell", {"thing": "a lathe"})) == (
            "permission_denied"
        )
    assert shop.sold == []


async def test_an_answer_cannot_be_given_twice(open_shop: OpenShop) -> None:
    async with open_shop() as shop, shop.visited("2026-07-28", Person()) as client:
        first = await round_of(client, "sell", {"thing": "a lathe"})
        given = answered(first, ONCE)
        assert isinstance(
            await round_of(client, "sell", {"thing": "a lathe"}, **given), CallToolResult
        )
        for _ in range(3):
            assert isinstance(
                await round_of(client, "sell", {"thing": "a lathe"}, **given), InputRequiredResult
            )
    assert shop.sold == ["a lathe"]


async def test_an_answer_counts_for_no_other_call(open_shop: OpenShop) -> None:
    async with open_shop() as shop, shop.visited("2026-07-28", Person()) as client:
        first = await round_of(client, "sell", {"thing": "a nail"})
        given = answered(first, ONCE)
        assert isinstance(
            await round_of(client, "sell", {"thing": "the shop"}, **given), InputRequiredResult
        )
    assert shop.sold == []


@pytest.mark.parametrize("state", ["{", "[]", "null"])
async def test_a_state_that_is_none_of_ours_is_refused(open_shop: OpenShop, state: str) -> None:
    async with open_shop() as shop, shop.visited("2026-07-28", Person()) as client:
        with pytest.raises(MCPError, match="was not issued by this server"):
            await round_of(client, "sell", {"thing": "a lathe"}, request_state=state)
    assert shop.sold == []


@pytest.mark.parametrize("state", ["", '{"tickets": 5}', '{"tickets": [[1]]}', '{"upstream": 1}'])
async def test_an_answer_to_nothing_counts_for_nothing(open_shop: OpenShop, state: str) -> None:
    async with open_shop() as shop, shop.visited("2026-07-28", Person()) as client:
        forged = {"input_responses": {"0" * 32: ONCE}, "request_state": state}
        assert isinstance(
            await round_of(client, "sell", {"thing": "a lathe"}, **forged), InputRequiredResult
        )
    assert shop.sold == []


async def test_a_call_that_asks_the_person_and_then_the_model_asks_the_person_once(
    open_shop: OpenShop, mode: str
) -> None:
    async def model(context: Any, params: CreateMessageRequestParams) -> CreateMessageResult:
        return CreateMessageResult(
            role="assistant", content=TextContent(text="Splendid!"), model="tiny"
        )

    person = Person()
    async with open_shop() as shop, shop.visited(mode, person, sampling_callback=model) as client:
        result = await client.call_tool("advertise", {"thing": "a lathe"})
    assert not result.is_error, result.content
    assert "Splendid" in told(result)
    assert len(person.asked) == 1
    assert shop.sold == ["a lathe"]


async def test_what_a_person_reads_hides_nothing(open_shop: OpenShop) -> None:
    person = Person("no")
    thing = "good\x1b[2K\u202ekcab\u200b\r\nwords " + "x" * 20_000 + " rm -rf /"
    async with open_shop() as shop, shop.visited("legacy", person) as client:
        await client.call_tool("sell", {"thing": thing})
    (asked,) = person.asked
    assert not set("\x1b\u202e\u200b\r") & set(asked.message)
    assert "<U+202E>" in asked.message
    assert "rm -rf /" in asked.message
    assert "characters are not shown here" in asked.message
    assert shop.sold == []


async def test_a_person_is_told_first_what_looks_like_something_else(open_shop: OpenShop) -> None:
    person = Person("no")
    thing = "\u0455udo of https://\u0430\u0440\u0440\u04cf\u0435.com/"
    async with open_shop() as shop, shop.visited("legacy", person) as client:
        await client.call_tool("sell", {"thing": thing})
    (asked,) = person.asked
    first = asked.message.partition("\n")[0]
    assert first.startswith("Look closely: ")
    assert "U+0455" in first
    assert "xn--80ak6aa92e.com" in first


async def test_the_first_line_says_what_is_asked_for_and_what_it_leaves_out(
    open_shop: OpenShop,
) -> None:
    person = Person("no")
    async with open_shop() as shop, shop.visited("legacy", person) as client:
        for thing in ("a lathe", f"a{' ' * 500}\n\n  lathe\x1b[2K\n", "lathes " * 500):
            await client.call_tool("sell", {"thing": thing})
    short, wild, long = (asked.message.partition("\n")[0] for asked in person.asked)
    assert short == "mcp wants to call sell: thing: a lathe"
    assert wild == "mcp wants to call sell: thing: a␊lathe␛[2K"
    assert long.startswith("mcp wants to call sell (3,516 characters in all): thing: lathes lathes")
    assert long.endswith("…")
    assert len(long) < 160


async def test_no_line_of_a_call_passes_for_one_of_the_question(open_shop: OpenShop) -> None:
    person = Person("no")
    thing = "a lathe\nclaude wants to call look:\ncount: 0"
    async with open_shop() as shop, shop.visited("legacy", person) as client:
        await client.call_tool("sell", {"thing": thing, "count": 7})
    (asked,) = person.asked
    lines = asked.message.split("\n")
    told = "mcp wants to call sell: thing: a lathe␊claude wants to call look:␊count: 0, count: 7"
    assert lines[:2] == [told, "sell asks unless a rule allows it (confirmation required)."]
    assert not [line for line in lines if line.startswith("claude wants")]
    assert [line for line in lines if line.startswith("    count: ")] == ["    count: 7"]


async def test_an_approval_counts_for_no_call_that_only_shows_itself_the_same(
    open_shop: OpenShop,
) -> None:
    async with open_shop() as shop, shop.visited("legacy", None) as client:
        await client.call_tool("pay", {"card": "4000"})
        (question,) = shop.store.waiting()
        assert question.asked.shown == "card: [redacted]"
        assert question.asked.digest != digest_of("pay", {"card": "4000"}, ANN)  # or it is guessed
        assert shop.store.answer(question.ticket, approved=True, by=COMMAND_LINE)
        other = await client.call_tool("pay", {"card": "5000"})
        assert error_type(other) == "approval_required"
        await client.call_tool("pay", {"card": "4000"})
    assert shop.sold == ["4000"]


QUESTION = Question("sell", ANN, "", "0" * 64, "thing: a lathe", "It sells.", "sell")


@dataclass
class Answering:
    """A person at the client, with something that happens just before their answer."""

    consent: Consent
    before: Callable[[str], object] = str
    tickets: Sequence[str] = ()

    def keep(self, ticket: str) -> bool:  # noqa: ARG002  # the protocol has it
        return False

    async def ask(self, question: Question, ticket: str) -> Consent:  # noqa: ARG002  # the same
        self.before(ticket)
        return self.consent


HELD: dict[str, Any] = {"root": "/", "command": "t", "wait": 0, "expire": 600, "grant": 600}


def approvals_of(store: ApprovalStore) -> StoredApprovals:
    return StoredApprovals(store, **HELD)


async def test_a_call_that_is_cancelled_as_it_is_approved_leaves_no_approval_to_others(
    tmp_path: Path,
) -> None:
    class Cancelling(ApprovalStore):
        """Has the call cancelled at the moment of the answer."""

        def answer(self, ticket: str, **said: Any) -> bool:
            is_first = super().answer(ticket, **said)
            anyio.from_thread.run_sync(scope.cancel)
            return is_first

    with closing(Library(tmp_path, MiniLMEmbedder())) as library:
        store = Cancelling(library.database)
        with anyio.CancelScope() as scope:
            await approvals_of(store).obtain(QUESTION, Answering(Consent.ONCE))
        with pytest.raises(ApprovalRequiredError):
            await approvals_of(ApprovalStore(library.database)).obtain(QUESTION, None)


async def test_what_is_allowed_for_a_while_in_one_client_is_not_allowed_in_another(
    tmp_path: Path,
) -> None:
    question = replace(QUESTION, client="claude-code", grant="sell(mug)")
    with closing(Library(tmp_path, MiniLMEmbedder())) as library:
        approvals = approvals_of(ApprovalStore(library.database))
        await approvals.obtain(question, Answering(Consent.FOR_A_WHILE))
        assert approvals.grants(question.identity, "claude-code") == ("sell(mug)",)
        assert approvals.grants(question.identity, "codex-mcp-client") == ()
    choices = choices_of(question)
    assert choices[Consent.FOR_A_WHILE] == "Allow sell(mug) for a while, in claude-code alone"


async def test_a_yes_after_a_no_on_the_command_line_allows_nothing_for_a_while(
    tmp_path: Path,
) -> None:
    with closing(Library(tmp_path, MiniLMEmbedder())) as library:
        store = ApprovalStore(library.database)

        def deny(ticket: str) -> None:
            assert store.answer(ticket, approved=False, by=COMMAND_LINE)

        with pytest.raises(PermissionDeniedError):
            await approvals_of(store).obtain(QUESTION, Answering(Consent.FOR_A_WHILE, deny))
        assert store.grants() == []


@pytest.mark.parametrize("user", ["ann", "bob"])
async def test_only_the_person_whose_settings_these_are_can_change_them(
    user: str, tmp_path: Path
) -> None:
    written: list[Any] = []
    asked = replace(QUESTION, identity=Identity(user_id=user), offers=(("sell",),))
    with closing(Library(tmp_path, MiniLMEmbedder())) as library:
        approvals = StoredApprovals(
            ApprovalStore(library.database), **HELD, allow=written.append, owner="ann"
        )
        if user == "ann":
            await approvals.obtain(asked, Answering(Consent.ALWAYS))
        else:
            with pytest.raises(ApprovalRequiredError):
                await approvals.obtain(asked, Answering(Consent.ALWAYS))
    assert written == ([("sell",)] if user == "ann" else [])


async def test_a_call_whose_approval_cannot_be_written_down_as_used_keeps_its_result(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    full_disk: Callable[[int], AbstractContextManager[None]],
) -> None:
    with closing(Library(tmp_path, MiniLMEmbedder())) as library:
        approvals = approvals_of(ApprovalStore(library.database))
        approval = await approvals.obtain(QUESTION, Answering(Consent.ONCE))
        with full_disk(0):
            await approvals.close(approval, is_final=True)
        assert "An approval stays claimed" in caplog.text
        with pytest.raises(ApprovalRequiredError):
            await approvals.obtain(QUESTION, None)
