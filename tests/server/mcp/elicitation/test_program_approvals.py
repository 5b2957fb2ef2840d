"""Calls of programs: a person is asked once for a loop, and what they allow goes no further."""

import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.server.lowlevel import Server
from mcp_types import ElicitRequestFormParams

from server.composition.machine import MachineParts
from server.mcp.approvals import StoredApprovals
from server.mcp.protocol import build_server
from server.mcp.sessions import ClientRequests, Sessions
from server.mcp.surface import FULL, Surface
from server.settings.sources import load
from storage.approvals import Approval as Answered
from storage.approvals import ApprovalStore, ProgramOffer
from storage.index.embedders.bundled import MiniLMEmbedder
from storage.library import Library
from storage.models import Identity
from tests.people import Person
from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.audit.recording import Audit
from tools.core.calling.program_approvals import Loop
from tools.core.client import Approval, Consent, Question
from tools.core.context import Link, Origin, RequestContext
from tools.core.manager import SandboxToolManager
from tools.core.permission import Permissions
from tools.core.registry import ToolRegistry
from tools.core.spec import Confirmation, Effect, Subject, SubjectKind, ToolScope, tool
from tools.policy.policy import Policy
from tools.sandbox.files.sandbox import Sandbox
from tools.toolsearch import call_tools

ANN, BOB = Identity(user_id="ann"), Identity(user_id="bob")
Calls = list[dict[str, Any]]


@dataclass
class Shop:
    """A server with programs, and tools that ask before they do anything."""

    server: Server[Any]
    manager: SandboxToolManager
    store: ApprovalStore
    approvals: StoredApprovals
    done: list[str]
    audit: Path
    policy: Policy

    @asynccontextmanager
    async def visited(self, mode: str, person: Person | None) -> AsyncIterator[Client]:
        async with Client(self.server, mode=mode, elicitation_callback=person) as client:
            yield client

    def lines(self, name: str) -> list[dict[str, Any]]:
        """What the audit log says of a tool."""
        found = map(json.loads, self.audit.read_text().splitlines())
        return [each for each in found if each["tool"] == name and each["outcome"] != "awaiting"]


OpenShop = Callable[..., AbstractAsyncContextManager[Shop]]


def _tools(done: list[str]) -> list[Callable[..., Any]]:
    about_path = Subject(SubjectKind.PATH, "path")

    @tool(scope=ToolScope.SYSTEM, effects={Effect.EXTERNAL}, subject=about_path)
    async def publish(path: str, note: str = "") -> str:
        """Publishes a file."""
        await anyio.lowlevel.checkpoint()
        done.append(path)
        return f"{path}{note}"

    @tool(scope=ToolScope.SYSTEM, effects={Effect.EXTERNAL})
    def send(to: str, text: str = "") -> str:
        """Sends a text."""
        done.append(to)
        return text

    @tool(
        scope=ToolScope.SYSTEM,
        effects={Effect.EXTERNAL},
        confirmation=Confirmation.REQUIRED,
        destructive=True,
    )
    def drop(table: str) -> str:
        """Drops a table."""
        done.append(table)
        return table

    @tool(scope=ToolScope.SYSTEM, effects={Effect.EXTERNAL}, destructive=True)
    def file(project: str, title: str, force: bool = False) -> str:
        """Files an issue."""
        done.append(title)
        return f"{project}{force}"

    return [publish, send, drop, file]


def _programs() -> list[Callable[..., Any]]:
    @tool(scope=ToolScope.SANDBOXED, effects={Effect.EXECUTE})
    async def through(context: RequestContext, path: str) -> str:
        """Publishes a file by another call."""
        return (await context.call("publish", {"path": path})).text

    @tool(scope=ToolScope.SANDBOXED, effects={Effect.EXECUTE}, resumable=True)
    async def program(
        context: RequestContext,
        calls: list[dict[str, Any]],
        most: int = 20,
        together: bool = False,
        code: str = "",
    ) -> dict[str, Any]:
        """Makes calls, and tells what came of each and what needed approval."""
        outcomes = [""] * len(calls)
        begun = 0

        async def make(own: RequestContext, place: int, call: dict[str, Any]) -> None:
            nonlocal begun
            begun += 1
            result = await own.result_of(call["name"], call["arguments"])
            nested = result.structured.get("outcomes")
            outcomes[place] = nested or result.structured.get("error_type", "ok")

        with context.looping(code, lambda: most - begun) as (own, loop):
            if together:
                async with anyio.create_task_group() as group:
                    for place, call in enumerate(calls):
                        group.start_soon(make, own, place, call)
            else:
                for place, call in enumerate(calls):
                    await make(own, place, call)
            return {"outcomes": outcomes, "needed": list(map(str, loop.needed))}

    return [through, program]


@pytest.fixture
def open_shop(tmp_path: Path) -> OpenShop:
    @asynccontextmanager
    async def open_shop(policy: Policy | None = None, wait: float = 0.0) -> AsyncIterator[Shop]:
        done: list[str] = []
        library = Library(tmp_path / "data", MiniLMEmbedder())
        store = ApprovalStore(library.database)
        approvals = StoredApprovals(
            store, root=str(tmp_path), command="t", wait=wait, expire=600, grant=3_600
        )
        registry = ToolRegistry()
        for function in (*_tools(done), *_programs(), call_tools):
            registry.add(FunctionToMCP.convert(function, source="builtin"))
        audit = Audit(tmp_path / "audit.jsonl")
        permissions = Permissions(lambda: shop.policy, lambda: approvals)
        manager = SandboxToolManager(
            registry,
            sandbox=Sandbox(tmp_path),
            library=library,
            permissions=permissions,
            machine=MachineParts(load({"root": tmp_path}, environ={}), {}).machine(),
            audit=audit,
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
        policy = policy or Policy("standard", root=tmp_path)
        shop = Shop(server, manager, store, approvals, done, tmp_path / "audit.jsonl", policy)
        async with requests.suspended.running():
            yield shop
        audit.close()
        library.close()

    return open_shop


def publishing(*paths: str) -> Calls:
    return [{"name": "publish", "arguments": {"path": path}} for path in paths]


def sending(*people: str) -> Calls:
    return [{"name": "send", "arguments": {"to": each, "text": each}} for each in people]


async def run(client: Client, calls: Calls, **more: Any) -> Any:
    result = await client.call_tool("program", {"calls": calls, **more})
    assert not result.is_error, result.content
    return result.structured_content


def allow_program(store: ApprovalStore, question: Answered) -> bool:
    """Says yes on the command line, to the rest of the program too."""
    return store.answer(
        question.ticket,
        approved=True,
        by="command line",
        said="for_program",
        program=question.asked.program,
    )


def choices(asked: ElicitRequestFormParams) -> dict[str, str]:
    answer: Any = asked.requested_schema["properties"]["answer"]
    return dict(zip(answer["enum"], answer["enumNames"], strict=True))


async def test_one_answer_is_for_the_same_calls_of_the_program_and_each_is_counted(
    open_shop: OpenShop, mode: str
) -> None:
    person = Person("for_program")
    async with open_shop() as shop, shop.visited(mode, person) as client:
        told = await run(client, publishing("a.txt", "a.txt", "a.txt"), most=4)
        approved = [each["approved_by"] for each in shop.lines("publish")]
    assert told["outcomes"] == ["ok"] * 3
    assert approved == [f"client for this program, {number} of 4" for number in (1, 2, 3)]
    (asked,) = person.asked
    first, second, third, *_ = asked.message.splitlines()
    assert first == "program wants to call publish (3 more calls may follow): a.txt"
    assert second.endswith(" The program belongs to mcp.")
    assert third == "    path: a.txt"
    assert choices(asked) == {
        "once": "Allow this call once",
        "for_program": "Allow publish(./a.txt) in this run, 3 more times at most",
        "for_program_wider": "Allow any publish in this run, 3 more times at most",
        "no": "Do not allow it",
        "no_more": "Allow no publish in this run",
    }


async def test_another_value_is_asked_about_and_another_spelling_of_the_same_is_not(
    open_shop: OpenShop, mode: str
) -> None:
    person = Person("for_program", "no")
    same = ["caf\u00e9/a.txt", "./caf\u00e9/a.txt", "x/../caf\u00e9/a.txt", "caf\u00e9//a.txt"]
    others = [
        *("caf\u00e9/../a.txt", "../caf\u00e9/a.txt", "cafe\u0301/a.txt", "c\u0430f\u00e9/a.txt"),
        *("CAF\u00c9/a.txt", "caf\u00e9/*"),
    ]
    async with open_shop() as shop, shop.visited(mode, person) as client:
        told = await run(client, publishing(*same, *others))
        assert shop.done == same
    assert told["outcomes"] == ["ok"] * len(same) + ["permission_denied"] * len(others)
    assert len(person.asked) == 1 + len(others)


async def test_a_program_that_makes_more_calls_than_were_allowed_is_asked_about_again(
    open_shop: OpenShop, mode: str
) -> None:
    person = Person("for_program", "no")
    async with open_shop() as shop, shop.visited(mode, person) as client:
        told = await run(client, publishing(*["a.txt"] * 5), most=3)
    assert told["outcomes"] == ["ok"] * 3 + ["permission_denied"] * 2
    assert len(person.asked) == 2
    assert list(choices(person.asked[1])) == ["once", "no", "no_more"]


INNER = {"name": "program", "arguments": {"calls": publishing("b"), "code": "x"}}
THROUGH = {"name": "through", "arguments": {"path": "c"}}
PROGRAMS: dict[str, tuple[str, Calls, str, int]] = {
    "calls like a denied one": ("no once no_more", publishing(*"aaabacdad"), "b", 3),
    "any call of the tool": ("for_program_wider", publishing(*"abc"), "abc", 1),
    "a later no": ("for_program no_more", publishing(*"aaba"), "aa", 2),
    "another spelling of a denied call": ("no once", publishing("a", "b", "./a"), "b", 2),
    "a denied tool": ("no_more once", [*publishing("a"), THROUGH, INNER], "", 1),
    "the same at once": ("for_program", publishing(*"aaaaaaaa"), "aaaaaaaa", 1),
    "a denied tool at once": ("no_more", publishing(*"abcdefgh"), "", 1),
    "nobody answers": ("cancel", publishing(*"abcdefgh"), "", 1),
}
"""Answers, calls, which are run, and how many questions are asked."""


@pytest.mark.parametrize("program", PROGRAMS)
async def test_an_answer_is_for_the_calls_that_it_was_given_for(
    open_shop: OpenShop, mode: str, program: str
) -> None:
    answers, calls, done, asked = PROGRAMS[program]
    person = Person(*answers.split())
    async with open_shop() as shop, shop.visited(mode, person) as client:
        told = await run(client, calls, together="at once" in program)
        assert shop.done == list(done)
    refused = "approval_required" if answers == "cancel" else "permission_denied"
    assert str(told["outcomes"]).count(refused) == len(calls) - len(done)
    assert len(person.asked) == asked


async def test_several_calls_in_one_are_a_program_too(open_shop: OpenShop, mode: str) -> None:
    person = Person("for_program")
    async with open_shop() as shop, shop.visited(mode, person) as client:
        await client.call_tool("call_tools", {"calls": sending("ann", "bob", "cleo")})
        assert sorted(shop.done) == ["ann", "bob", "cleo"]
        counted = {each["approved_by"][-6:] for each in shop.lines("send")}
    assert counted == {"1 of 3", "2 of 3", "3 of 3"}
    (asked,) = person.asked
    assert asked.message.startswith("call_tools wants to call send (2 more calls may follow): ")


async def test_what_always_asks_asks_about_each_call_and_takes_no_other_answer(
    open_shop: OpenShop, mode: str
) -> None:
    drops = [{"name": "drop", "arguments": {"table": each}} for each in "abc"]
    person = Person("once", "for_program", "for_program_wider")
    async with open_shop() as shop, shop.visited(mode, person) as client:
        told = await run(client, drops)
        assert shop.done == ["a"]
    assert list(choices(person.asked[0])) == ["once", "no", "no_more"]
    assert told["outcomes"] == ["ok", "approval_required", "approval_required"]


def filing(project: str, *titles: str) -> Calls:
    return [{"name": "file", "arguments": {"project": project, "title": each}} for each in titles]


async def test_what_may_destroy_is_allowed_within_what_two_calls_have_in_common(
    open_shop: OpenShop, mode: str
) -> None:
    person = Person("once", "for_program", "no", "no_more")
    more = {"name": "file", "arguments": {"project": "pa", "title": "g", "force": True}}
    others = [more, *filing("p\u0430", "e"), *filing("pa*", "f")]
    async with open_shop() as shop, shop.visited(mode, person) as client:
        await run(client, [*filing("pa", "a", "b", "c", "d"), *others], most=6)
        assert shop.done == ["a", "b", "c", "d"]
    assert list(choices(person.asked[0])) == ["once", "no", "no_more"]
    assert choices(person.asked[1])["for_program"] == (
        'Allow file(project="pa", force=false) in this run, 4 more times at most'
    )
    assert len(person.asked) == 4


async def test_a_directory_is_allowed_once_two_files_of_it_were_asked_about(
    open_shop: OpenShop, mode: str
) -> None:
    person = Person("once", "for_program", "no")
    inside = ["d/a", "d/e/b", "d/c", "d/e/../f"]
    outside = ["d/../a", "d2/a", "D/a", "\u0501/a", "/d/a"]
    async with open_shop() as shop, shop.visited(mode, person) as client:
        told = await run(client, publishing(*inside, *outside))
        assert shop.done == inside
    assert told["outcomes"][len(inside) :] == ["permission_denied"] * len(outside)
    assert choices(person.asked[1])["for_program"] == (
        "Allow publish(./d/**) in this run, 18 more times at most"
    )
    assert len(person.asked) == 2 + len(outside)


async def test_what_another_rule_asks_about_is_not_covered(open_shop: OpenShop, mode: str) -> None:
    person = Person("for_program_wider", "for_program", "no")
    policy = Policy("standard", root=Path("/root"), ask=["publish(note=x)", "send(to=boss)"])
    noted = [{"name": "publish", "arguments": {"path": "a", "note": "x"}}]
    async with open_shop(policy) as shop, shop.visited(mode, person) as client:
        told = await run(client, publishing("a") + sending("ann", "bob", "boss") + noted)
        assert shop.done == ["a", "ann", "bob"]
    assert told["outcomes"] == ["ok"] * 3 + ["permission_denied"] * 2
    assert len(person.asked) == 4


async def test_what_a_tool_or_a_program_within_the_program_calls_is_asked_about_itself(
    open_shop: OpenShop, mode: str
) -> None:
    person = Person("for_program", "for_program", "no")
    inner = {"name": "program", "arguments": {"calls": publishing("a"), "code": "x"}}
    within = [{"name": "through", "arguments": {"path": "a"}}] * 2
    async with open_shop() as shop, shop.visited(mode, person) as client:
        told = await run(client, [*publishing("a", "a"), *within, inner])
        assert shop.done == ["a"] * 4
    assert told["outcomes"] == ["ok"] * 4 + [["permission_denied"]]
    assert [asked.message.split(" wants")[0] for asked in person.asked] == [
        "program",
        "program > through",
        "program > program",
    ]


async def test_neither_another_run_nor_a_direct_call_has_what_was_allowed_to_one(
    open_shop: OpenShop, mode: str
) -> None:
    person = Person("for_program", "no")
    async with open_shop() as shop, shop.visited(mode, person) as client:
        await run(client, publishing("a", "a"))
        again = await run(client, publishing("a"))
        assert (await client.call_tool("publish", {"path": "a"})).is_error
        assert shop.store.grants() == []
    assert again["outcomes"] == ["permission_denied"]
    assert len(person.asked) == 3


async def test_a_rule_that_comes_to_deny_is_obeyed_at_once(open_shop: OpenShop, mode: str) -> None:
    denying = Policy("standard", root=Path("/root"), deny=["publish(a)"])
    person = Person("for_program")
    async with open_shop() as shop, shop.visited(mode, person) as client:
        person.before = partial(setattr, shop, "policy", denying)
        told = await run(client, publishing("a", "a"))
        assert shop.done == []
    assert told["outcomes"] == ["permission_denied"] * 2


async def test_where_nobody_can_be_asked_the_program_lists_once_what_would_allow_it(
    open_shop: OpenShop, mode: str
) -> None:
    async with open_shop() as shop, shop.visited(mode, None) as client:
        calls = [*publishing("a", "b", "a"), *sending(*map(str, range(40)))]
        told = await run(client, calls)
        waiting = Counter(each.asked.tool for each in shop.store.waiting())
        assert shop.done == []
    assert told["outcomes"] == ["approval_required"] * len(calls)
    reason = "It reaches beyond this machine."
    assert told["needed"] == [
        f"publish: the user can allow 'publish(./a)', 'publish(./b)' in policy.allow. {reason}",
        f"send: the user can allow 'send' in policy.allow. {reason}",
    ]
    assert waiting == {"publish": 2, "send": 20}


async def test_an_answer_on_the_command_line_is_for_the_program_that_waits(
    open_shop: OpenShop, mode: str
) -> None:
    async with open_shop(wait=60) as shop, anyio.create_task_group() as group:
        shop.store.watch("somebody")

        async def answer() -> None:
            while not (waiting := shop.store.waiting()):  # another process would tell no event
                await anyio.lowlevel.checkpoint()
            allow_program(shop.store, waiting[0])

        group.start_soon(answer)
        with anyio.fail_after(30):
            async with shop.visited(mode, None) as client:
                await run(client, publishing("a", "a"), most=2)
        lines = shop.lines("publish")
    assert [each["approved_by"] for each in lines] == [
        "command line for this program, 1 of 2",
        "command line for this program, 2 of 2",
    ]


async def test_a_late_answer_for_a_program_is_one_call_of_the_next_run(
    open_shop: OpenShop, mode: str
) -> None:
    async with open_shop() as shop, shop.visited(mode, None) as client:
        await run(client, publishing("a"))
        (question,) = shop.store.waiting()
        allow_program(shop.store, question)
        told = await run(client, publishing("a", "a"))
    assert told["outcomes"] == ["ok", "approval_required"]


async def test_an_answer_to_what_another_run_offered_is_none(
    open_shop: OpenShop, mode: str
) -> None:
    async with open_shop() as shop, shop.visited(mode, None) as client:
        await run(client, publishing("a"))
        (shown,) = shop.store.waiting()
        await run(client, publishing("a"))
        (question,) = shop.store.waiting()
        assert question.ticket == shown.ticket
        assert not allow_program(shop.store, shown)
        assert allow_program(shop.store, question)


@dataclass
class Answering:
    """A person at the client of one call."""

    consents: list[Consent]
    asked: list[Question] = field(default_factory=list)
    tickets: Sequence[str] = ()

    def keep(self, ticket: str) -> bool:  # noqa: ARG002  # the protocol has it
        return False

    async def ask(self, question: Question, ticket: str) -> Consent:  # noqa: ARG002  # the same
        self.asked.append(question)
        await anyio.lowlevel.checkpoint()
        return self.consents.pop(0)


async def test_programs_of_two_people_at_once_have_nothing_of_each_other(
    open_shop: OpenShop,
) -> None:
    ann, bob = Answering([Consent.FOR_PROGRAM]), Answering([Consent.NO_MORE])
    outcomes: dict[str, Any] = {}
    async with open_shop() as shop, anyio.create_task_group() as group:

        async def call(identity: Identity, approver: Answering) -> None:
            context = RequestContext(Origin(identity), Link(approver=approver))
            result = await shop.manager.execute(
                "program", {"calls": publishing("a", "a", "a")}, context
            )
            outcomes[identity.user_id] = result.structured["outcomes"]

        group.start_soon(call, ANN, ann)
        group.start_soon(call, BOB, bob)
    assert outcomes == {"ann": ["ok"] * 3, "bob": ["permission_denied"] * 3}


async def test_what_was_allowed_ends_with_a_run_that_is_cancelled(open_shop: OpenShop) -> None:
    offer = ProgramOffer("1", "program", 5, "publish(a)")
    question = Question("publish", ANN, "", "0", "", "", "", program=offer)
    loops: list[Loop] = []

    def granted() -> Approval | None:
        return loops[0].granted("publish", "it", lambda rule: rule == "publish(a)")

    async with open_shop() as shop:
        with (
            anyio.CancelScope() as scope,
            RequestContext(Origin(ANN)).looping("", lambda: 5) as (_, loop),
        ):
            loops.append(loop)
            person = Answering([Consent.FOR_PROGRAM])
            await loop.obtain(shop.approvals, question, person, asking="it", rule="")
            assert granted() is not None
            scope.cancel()
            await anyio.sleep_forever()
        assert granted() is None
