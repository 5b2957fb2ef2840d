"""Tools that agents create: approved whole, kept, found, called and removed."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from server.app import build
from server.settings.sources import load
from storage.approvals import ApprovalStore
from storage.models import Identity
from tests.conftest import told
from tests.people import Person
from tests.tools.conftest import Crib, Open
from tools.core.context import Origin, RequestContext

pytestmark = pytest.mark.slow

COUNT = '''
import re

_WORD = re.compile(r"\\w+")


async def count_words(file_path: str, least: int = 1) -> dict[str, int]:
    """Counts the long words of a file.

    Args:
        file_path: Which file.
        least: Letters that a word has.
    """
    read = await tools.read_file(file_path=file_path)
    words = _WORD.findall(read.content)
    return {"words": sum(len(each) >= least for each in words)}
'''
SHOUT = '''
def shout(text: str) -> str:
    """Says it louder."""
    return text.upper()
'''


@pytest.fixture(scope="module")
async def crib(open_shared: Open) -> AsyncIterator[Crib]:
    async with open_shared() as crib:
        (crib.root / "a.txt").write_text("one two three\n")
        await crib.call("create_tool", tool_name="count_words", implementation=COUNT)
        yield crib


async def test_a_tool_is_approved_whole_and_callable_at_once(open_crib: Open, mode: str) -> None:
    person = Person()
    async with (
        open_crib(mode) as crib,
        Client(crib.app.server, mode=mode, elicitation_callback=person) as client,
    ):
        (crib.root / "a.txt").write_text("one two three\n")
        given = {"tool_name": "count_words", "implementation": COUNT, "reasoning": "I count."}
        made = told(await client.call_tool("create_tool", given))
        assert made.startswith("Created version 1 of count_words(")
        assert len(person.asked) == 1
        lines = [line.strip() for line in person.asked[0].message.splitlines()]
        assert "reasoning: I count." in lines
        assert all(line.strip() in lines for line in COUNT.strip().splitlines())
        called = await client.call_tool("count_words", {"file_path": "a.txt", "least": 4})
        assert called.structured_content == {"words": 1}
        assert len(person.asked) == 1


async def test_it_is_found_described_and_called_as_any_tool(crib: Crib) -> None:
    found = await crib.text("search_tools", query="count the long words of a file", top_k=1)
    assert found.startswith("count_words(file_path: str, least?): [created by mcp] Counts the long")
    described = await crib.call("describe_tool", name="count_words")
    assert described["source"] == "created"
    assert described["input_schema"]["properties"]["least"] == {
        "type": "integer",
        "default": 1,
        "description": "Letters that a word has.",
    }
    assert described["code"] == f"# version 1\n{COUNT.strip()}\n"
    assert described["code"] in await crib.text("describe_tool", name="count_words")
    assert "code" not in await crib.call("describe_tool", name="read_file")
    arguments = {"file_path": "a.txt"}
    assert "3" in await crib.text("call_tool", name="count_words", arguments=arguments)
    batch = await crib.call("call_tools", calls=[{"name": "count_words", "arguments": arguments}])
    assert batch["answers"][0]["result"] == {"words": 3}
    program = await crib.text("run_code", code="(await tools.count_words('a.txt', least=4)).words")
    assert program.startswith("1\n")


async def test_wrong_arguments_and_failures_are_told_as_of_any_tool(crib: Crib) -> None:
    kind, text = await crib.failure("count_words", file_path="a.txt", lest=4)
    assert kind == "invalid_arguments"
    assert "lest" in text
    kind, text = await crib.failure("count_words", file_path="gone.txt")
    assert kind == "tool_failed"
    assert "gone.txt" in text


COUNTING = '''
async def count_up(least: int, is_patient: bool = True) -> int:
    """Counts with a program."""
    for number in range(least):
        try:
            await tools.bash(command=f"seq {number}")
        except ToolError:
            if not is_patient:
                raise
    return least
'''


async def test_what_its_calls_needed_approval_for_is_told_with_its_result(open_crib: Open) -> None:
    needed = (
        "[Needs approval: bash: the user can allow 'bash(seq 0)', 'bash(seq 1)' in policy.allow."
        " Not covered by a rule: `seq 0`. It runs programs.]"
    )
    allowed = ["create_tool", "source:created", "run_code"]
    async with open_crib(policy__profile="cautious", policy__allow=allowed) as crib:
        await crib.call("create_tool", tool_name="count_up", implementation=COUNTING)
        async with Client(crib.app.server) as alone:
            counted = await alone.call_tool("count_up", {"least": 2})
            failed = await alone.call_tool("count_up", {"least": 2, "is_patient": False})
            code = {"code": "await tools.count_up(2)"}
            program = await alone.call_tool("run_code", code)
    assert told(counted) == f"{needed}\n2"
    assert counted.structured_content == {"result": 2}
    assert failed.is_error
    assert needed.partition(",")[0] in told(failed)
    assert told(program) == f"2\n{needed}\n[calls: 1 count_up]"


PROGRAM = """
from tools import read_file
path = "a.txt"
least = 4
text = (await read_file(file_path=path)).content
about = '''Words
  of it'''
found = [each for each in text.split() if len(each) >= least]
print({"about": about,
       "words": len(found)})
"""


async def test_a_program_that_worked_is_a_tool_with_its_variables_as_parameters(
    open_crib: Open,
) -> None:
    async with open_crib() as crib:
        (crib.root / "a.txt").write_text("one two three\n")
        given: dict[str, Any] = {"tool_name": "long_words", "from_run": True}
        given["description"] = "Counts long words."
        assert (await crib.failure("create_tool", **given))[0] == "not_found"
        assert "'words': 1" in await crib.text("run_code", code=PROGRAM)
        await crib.text("run_code", code="1 / 0")  # one that failed is not the last that worked
        properties = {
            "path": {"type": "string", "description": "Which file"},
            "least": {"type": "integer"},
        }
        made = await crib.call("create_tool", **given, parameters={"properties": properties})
        assert made["signature"] == "long_words(path?: string, least?: integer)"
        said = {"about": "Words\n  of it", "words": 3}
        assert await crib.call("long_words", least=3) == said
        kept = crib.app.library.catalog.created.get("local", "long_words")
        assert kept is not None
        assert kept.source.splitlines()[:4] == [
            "async def long_words(*, path: str = 'a.txt', least: int = 4):",
            "",  # as in the program
            "    read_file = tools.read_file",
            "    text = (await read_file(file_path=path)).content",
        ]
        for parameters, why in (
            ({"properties": {"text": {"type": "string"}}}, "sets text to no plain value"),
            (properties, "it has no properties"),
        ):
            kind, text = await crib.failure("create_tool", **given, parameters=parameters)
            assert kind == "invalid_arguments"
            assert why in text


async def test_an_update_is_shown_as_what_changes_and_takes_the_place(open_crib: Open) -> None:
    person = Person()
    async with open_crib() as crib, Client(crib.app.server, elicitation_callback=person) as client:
        for source in (SHOUT, SHOUT.replace("upper()", "upper() + '!'")):
            given = {"tool_name": "shout", "implementation": source}
            assert not (await client.call_tool("create_tool", given)).is_error
        assert "shout, version 2" in person.asked[1].message
        lines = [line.strip() for line in person.asked[1].message.splitlines()]
        changed = [line for line in lines if line[:1] in {"-", "+"}]
        assert changed == ["-    return text.upper()", "+    return text.upper() + '!'"]
        assert told(await client.call_tool("shout", {"text": "hi"})) == "HI!"
        versions = crib.app.library.catalog.created.versions("local", "shout")
        assert [each.version for each in versions] == [1, 2]


async def test_a_long_source_is_shown_whole_and_soon(open_crib: Open) -> None:
    person = Person()
    lines = [f"    # {number % 100}" for number in range(5_000)]
    source = SHOUT + "\n".join(lines)
    async with open_crib() as crib, Client(crib.app.server, elicitation_callback=person) as client:
        for kept in (source, source.replace("# 99", "# 9")):
            given = {"tool_name": "shout", "implementation": kept}
            with anyio.fail_after(60):
                assert not (await client.call_tool("create_tool", given)).is_error
            shown = [line.strip() for line in person.asked[-1].message.splitlines()]
            assert shown[-5_000:] == [line.strip() for line in kept.splitlines()[-5_000:]]


async def test_no_comment_is_shown_as_a_line_of_code(open_crib: Open) -> None:
    person = Person()
    source = SHOUT.replace("    return", "    # it is checked:\u2028    assert text\n    return")
    async with open_crib() as crib, Client(crib.app.server, elicitation_callback=person) as client:
        await client.call_tool("create_tool", {"tool_name": "shout", "implementation": source})
    assert "# it is checked:<U+2028>    assert text" in person.asked[0].message


async def test_where_nobody_can_be_asked_nothing_is_kept(open_crib: Open) -> None:
    async with open_crib() as crib, Client(crib.app.server) as client:
        given = {"tool_name": "shout", "implementation": SHOUT}
        refused = await client.call_tool("create_tool", given)
        assert told(refused).startswith("approval_required: ")
        assert "approvals approve" in told(refused)
        assert (await crib.failure("shout", text="hi"))[0] == "unknown_tool"


async def test_an_approval_is_of_that_source_alone(open_crib: Open) -> None:
    async with open_crib() as crib, Client(crib.app.server) as client:
        given = {"tool_name": "shout", "implementation": SHOUT}
        await client.call_tool("create_tool", given)
        store = ApprovalStore(crib.app.library.database)
        (asked,) = store.waiting()
        assert SHOUT.strip().splitlines()[-1] in asked.asked.shown
        store.answer(asked.ticket, approved=True, by="command line")
        other = {**given, "implementation": SHOUT.replace("upper", "lower")}
        assert told(await client.call_tool("create_tool", other)).startswith("approval_required")
        assert not (await client.call_tool("create_tool", given)).is_error


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"tool_name": "read_file"}, "the name of read_file"),
        ({"tool_name": "view_text_file"}, "the name of read_file"),
        ({"tool_name": "read_fi1e"}, "looks like, the name of read_file"),
        ({"tool_name": "readfile"}, "looks like, the name of read_file"),
        ({"tool_name": "todowrite"}, "looks like, the name of todo"),
        ({"tool_name": "github__push"}, "'__'"),
        ({"tool_name": "class"}, "a word of Python"),
        ({"tool_name": "Shout"}, "tool_name"),
        ({"tool_name": "sh\u043eut"}, "tool_name"),
        ({"tool_name": "shout\n"}, "tool_name"),
        ({"implementation": "import requests\n" + SHOUT}, "requests is not in the standard"),
        ({"implementation": None}, "give either the source, or from_run"),
        ({"implementation": "def shout(text: str) -> str:\n    return text"}, "no docstring"),
        ({"description": "Shouts.\u202e"}, "description: line 1 has invisible characters"),
        ({"parameters": {"description": "x" * 20_000}}, "parameters: more than 20,000 characters"),
        ({"parameters": {"properties": {"words": {}}}}, "it has words, but the function has text"),
        ({"implementation": SHOUT + "_x = 1 / 0"}, "ZeroDivisionError: division by zero"),
        ({"implementation": SHOUT + "other = lambda x: x\n"}, "implementation: "),
        ({"implementation": SHOUT.replace("str)", "Missing)")}, "line 1: NameError"),
    ],
)
async def test_what_cannot_be_a_tool_is_refused_with_what_to_change(
    arguments: dict[str, Any], said: str, crib: Crib
) -> None:
    given = {"tool_name": "shout", "implementation": SHOUT, **arguments}
    kind, text = await crib.failure("create_tool", **given)
    assert kind in {"invalid_arguments", "conflict"}
    assert said in text
    assert crib.app.library.catalog.created.get("local", "shout") is None


async def test_a_removed_tool_is_gone_at_once(open_crib: Open) -> None:
    async with open_crib() as crib:
        await crib.call("create_tool", tool_name="shout", implementation=SHOUT)
        assert await crib.text("shout", text="hi") == "HI"
        assert await crib.call("remove_tool", tool_name="shout") == {"name": "shout", "version": 1}
        assert (await crib.failure("shout", text="hi"))[0] == "unknown_tool"
        assert "shout" not in await crib.text("search_tools", query="say it louder")
        assert (await crib.failure("remove_tool", tool_name="shout"))[0] == "not_found"
        assert (await crib.failure("remove_tool", tool_name="read_file"))[0] == "not_found"


async def test_it_outlives_the_server_and_is_listed_where_everything_is(open_crib: Open) -> None:
    async with open_crib() as crib:
        assert "shout" not in await names(crib.client)
        await crib.call("create_tool", tool_name="shout", implementation=SHOUT)
    async with open_crib() as crib:
        assert "shout" in await names(crib.client)
        assert await crib.text("shout", text="hi") == "HI"
    async with open_crib(surface="lean") as crib:
        assert "shout" not in await names(crib.client)
        assert await crib.text("shout", text="hi") == "HI"
    for named in ("tag:created", "shout"):
        async with open_crib(surface=["lean", named]) as crib:
            assert "shout" in await names(crib.client)


async def names(client: Client) -> set[str]:
    return {each.name for each in (await client.list_tools()).tools}


async def test_clients_are_told_that_the_list_changed(open_crib: Open, mode: str) -> None:
    changed = anyio.Event()

    async def hear(message: Any) -> None:
        if type(message).__name__ == "ToolListChangedNotification":
            changed.set()

    async with open_crib(mode) as crib:
        if mode == "legacy":
            async with Client(crib.app.server, mode=mode, message_handler=hear) as client:
                await names(client)
                await crib.call("create_tool", tool_name="shout", implementation=SHOUT)
                with anyio.fail_after(5):
                    await changed.wait()
                assert "shout" in await names(client)
            return
        async with crib.client.listen(tools_list_changed=True) as events:
            await names(crib.client)
            await crib.call("create_tool", tool_name="shout", implementation=SHOUT)
            with anyio.fail_after(5):
                event = await anext(aiter(events))
        assert type(event).__name__ == "ToolsListChanged"
        assert "shout" in await names(crib.client)


async def test_another_server_on_the_same_data_has_it_without_being_asked(
    open_crib: Open, tmp_path: Path
) -> None:
    async with open_crib() as crib:
        flags = {"data_dir": tmp_path / "data", "root": tmp_path / "root", "surface": "full"}
        other = build(load(flags, environ={"TOOLCRIB_CONFIG": ""}))
        async with other.running(), Client(other.server) as client:
            assert "shout" not in await names(client)
            heard = anyio.Event()
            other.created.on_change(heard.set)
            await crib.call("create_tool", tool_name="shout", implementation=SHOUT)
            with anyio.fail_after(10):
                await heard.wait()
            assert told(await client.call_tool("shout", {"text": "hi"})) == "HI"
            await crib.call("remove_tool", tool_name="shout")
            assert "unknown_tool" in told(await client.call_tool("shout", {"text": "hi"}))


async def test_a_server_that_has_not_looked_yet_calls_no_other_version(
    open_crib: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.functions.programs.created.WATCH_SECONDS", 3600)
    async with open_crib() as crib:
        await crib.call("create_tool", tool_name="shout", implementation=SHOUT)
        flags = {"data_dir": tmp_path / "data", "root": tmp_path / "root", "surface": "full"}
        other = build(load(flags, environ={"TOOLCRIB_CONFIG": ""}))
        async with other.running(), Client(other.server) as client:
            assert told(await client.call_tool("shout", {"text": "hi"})) == "HI"
            changed = SHOUT.replace("upper", "title")
            await crib.call("create_tool", tool_name="shout", implementation=changed)
            assert "its version is now 2" in told(await client.call_tool("shout", {"text": "hi"}))
            assert told(await client.call_tool("shout", {"text": "hi"})) == "Hi"
            await crib.call("remove_tool", tool_name="shout")
            assert "unknown_tool" in told(await client.call_tool("shout", {"text": "hi"}))


async def test_a_tool_is_one_users_alone(open_crib: Open) -> None:
    async with open_crib(policy__allow=["create_tool"]) as crib:
        manager = crib.app.manager
        ann, bob = (RequestContext(Origin(Identity(user_id=each))) for each in ("ann", "bob"))
        given = {"tool_name": "shout", "implementation": SHOUT}

        async def found(context: RequestContext) -> str:
            asked = {"query": "say it louder", "top_k": 3}
            return (await manager.execute("search_tools", asked, context)).text

        assert not (await manager.execute("create_tool", given, ann)).is_error
        assert "shout" in await found(ann)
        assert "shout" not in await found(bob)
        for name, arguments in (
            ("shout", {"text": "hi"}),
            ("call_tool", {"name": "shout", "arguments": {"text": "hi"}}),
            ("created:shout:ann", {"text": "hi"}),
            ("describe_tool", {"name": "shout"}),
            ("describe_tool", {"name": "created:shout:ann"}),
        ):
            result = await manager.execute(name, arguments, bob)
            assert result.structured["error_type"] == "unknown_tool"
            assert "shout" not in result.structured["suggestions"]
        removed = await manager.execute("remove_tool", {"tool_name": "shout"}, bob)
        assert removed.structured["error_type"] == "not_found"
        whisper = {**given, "implementation": SHOUT.replace("upper", "lower")}
        assert not (await manager.execute("create_tool", whisper, bob)).is_error
        said = [await manager.execute("shout", {"text": "Hi"}, each) for each in (ann, bob)]
        assert [each.text for each in said] == ["HI", "hi"]


async def test_a_tool_of_everybodys_that_comes_later_wins(open_crib: Open, tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    async with open_crib() as crib:
        await crib.call("create_tool", tool_name="shout", implementation=SHOUT)
    file.write_text('def shout(text: str) -> str:\n    """Own."""\n    return "own"\n')
    async with open_crib(functions__paths=[file]) as crib:
        await names(crib.client)  # waits for the file
        assert await crib.text("shout", text="hi") == "own"
        assert (await crib.call("describe_tool", name="shout"))["source"].startswith("function:")
