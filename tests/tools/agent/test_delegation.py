"""Delegation: agents get a task and a Toolcrib, and are held to what their caller may."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

from server.clients.locations import command_path
from server.mcp.sessions import Sessions
from server.own import OwnServer
from server.transport.http import serve_one
from server.transport.middleware import Caller
from storage.agent.delegations import Ceilings, NewDelegation
from storage.models import Identity
from tests.tools.conftest import Open, agree

pytestmark = [pytest.mark.slow, pytest.mark.boundary]

AGENT = Path(__file__).with_name("small_agent.py")
ALLOWED = {"policy__allow": ("delegate_to_agent",)}


def small(**more: Any) -> dict[str, Any]:
    """The settings of the small agent."""
    return {
        "command": [sys.executable, str(AGENT)],
        "answer": "said.answer",
        "cost": "usd",
        "session": "id",
        "readable": [str(AGENT.parent)],
        "description": "Does small things",
        **more,
    }


@pytest.fixture(scope="module")
async def crib(open_shared: Open) -> AsyncIterator[Any]:
    agents = {"small": small(), "other": small(capabilities=["translate texts into French"])}
    async with open_shared(agents=agents, **ALLOWED) as crib:
        yield crib


@pytest.fixture
def mark(tmp_path: Path) -> Iterator[str]:
    """Names the processes that an agent leaves, should it."""
    mark = f"left-by-{os.getpid()}-{tmp_path.name}"
    yield mark
    for pid in survivors(mark):  # of a test that fails
        os.kill(pid, 9)


def survivors(mark: str) -> list[int]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if line.endswith(f"{mark}\0".encode()):
            found.append(int(process.name))
    return found


async def called(crib: Any, name: str, **arguments: Any) -> dict[str, Any]:
    """The structured result of a call; what may become a task is answered with text alone."""
    result = await crib.app.manager.execute(name, arguments, crib.app.context)
    assert not result.is_error, result.text
    found: dict[str, Any] = result.structured
    return found


async def delegated(crib: Any, task: str, to: str = "small") -> dict[str, Any]:
    return await called(crib, "delegate_to_agent", target_agent=to, subtask=task)


async def answer(crib: Any, task: str, to: str = "small") -> str:
    said: str = (await delegated(crib, task, to))["answer"]
    return said


async def test_an_agent_does_a_task_with_the_toolcrib_that_it_is_given(crib: Any) -> None:
    (crib.root / "hello.txt").write_text("hello from the root\n")
    report = await delegated(crib, 'call read_file {"file_path": "hello.txt"}')
    assert "hello from the root" in report["answer"]
    assert (report["cost"], report["agent_session"]) == (0.25, "s-1")
    assert report["sandbox"] == "bubblewrap"


async def test_what_an_agent_did_is_found_by_query_and_in_its_own_session(crib: Any) -> None:
    task = 'call remember {"content": "The kingfisher nests in the bank"}'
    report = await delegated(crib, task)
    found = await crib.call("query", query="who was told to remember the kingfisher")
    [event] = [each for each in found["hits"] if each["id"] == report["event_id"]]
    assert "Task: call remember" in event["content"]
    recorded = await crib.call("query_events", session=report["session_id"])
    assert [each["action"] for each in recorded["events"]] == ["remember"]


async def test_the_answer_of_an_agent_is_marked_as_its_words(crib: Any) -> None:
    told = await crib.text("delegate_to_agent", target_agent="small", subtask="say this")
    first, _, rest = told.partition("--- words of small, ")
    assert first.startswith("[small answered after")
    mark = rest[:8]
    assert rest.endswith(f"--- end of the words of small, {mark} ---")


async def test_a_task_that_begins_like_an_option_is_a_task(open_crib: Open) -> None:
    by_argument = small(command=[sys.executable, str(AGENT), "{prompt}"])
    async with open_crib(agents={"small": small(), "by_argument": by_argument}, **ALLOWED) as crib:
        for name in ("small", "by_argument"):
            said = await answer(crib, "--help; $(touch pwned) {url}", name)
            assert said == "was told: --help; $(touch pwned) {url}"
    assert not (crib.root / "pwned").exists()


async def test_an_agent_is_given_no_variable_that_the_settings_do_not_name(
    open_crib: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMALL_KEY", "key-of-the-small-agent")
    monkeypatch.setenv("OTHER_KEY", "key-of-another")
    async with open_crib(agents={"small": small(environment=["SMALL_KEY"])}, **ALLOWED) as crib:
        names = (await answer(crib, "variables")).split()
    assert "SMALL_KEY" in names
    assert "OTHER_KEY" not in names
    assert not [name for name in names if name.startswith("TOOLCRIB")]


async def test_neither_control_characters_nor_its_token_come_back_from_an_agent(crib: Any) -> None:
    assert await answer(crib, "colour") == "␛[31mred␛[0m [token]"


async def test_a_failing_agent_fails_with_its_explanation(crib: Any) -> None:
    kind, told = await crib.failure(
        "delegate_to_agent", target_agent="small", subtask="fail the door is locked"
    )
    assert kind == "upstream_failed"
    assert "small failed (exit code 1). Its words:\n> I could not: the door is locked" in told
    assert "\nIts errors:\n> " in told
    assert "\n> the lock: rusty" in told
    assert len(told) < 5_000


async def test_broken_json_is_told_as_it_is(crib: Any) -> None:
    report = await delegated(crib, "broken")
    assert report["answer"].startswith('{"said": {"answer": [[[')
    assert "No answer was found at 'said.answer'" in report["notes"][0]


async def test_a_flood_of_output_is_bounded(crib: Any) -> None:
    report = await delegated(crib, "flood")
    assert report["answer"] == "after the flood"
    assert len(report["log"]) < 20_000
    assert "left out here" in report["log"]


async def test_nothing_of_an_agent_lingers(crib: Any, mark: str) -> None:
    assert await answer(crib, f"linger {mark}") == "left something behind"
    assert not survivors(mark)


async def test_what_an_agent_has_left_running_in_the_background_ends_with_it(
    open_crib: Open, mark: str
) -> None:
    line = {"command": f"echo up; sleep 600; : {mark}", "run_in_background": True}
    allowed = {"policy__allow": ("delegate_to_agent", "bash")}
    async with open_crib(agents={"small": small()}, **allowed) as crib:
        own = await crib.call("bash", **line)
        with anyio.fail_after(60):
            while not (await crib.call("bash_output", job_id=own["job_id"]))["output"]:
                await anyio.lowlevel.checkpoint()  # its helpers have all become the shell then
        before = survivors(mark)
        assert "[running as job" in await answer(crib, f"call bash {json.dumps(line)}")
        assert survivors(mark) == before
        assert (await crib.call("bash_output", job_id=own["job_id"]))["state"] == "running"


async def test_a_call_of_an_agent_that_goes_on_as_a_task_ends_with_it(open_crib: Open) -> None:
    allowed = {"policy__allow": ("delegate_to_agent", "run_code")}
    code = json.dumps({"code": "import asyncio\nawait asyncio.sleep(600)"})
    async with open_crib(agents={"small": small()}, patience=0.1, **allowed) as crib:
        told = await answer(crib, f"call run_code {code}")
        task = told.partition("as task ")[2][:32]
        assert "cancelled" in await crib.text("get_task", task_id=task, wait_seconds=0)


async def test_an_agent_that_hangs_is_ended_with_all_that_it_started(
    open_crib: Open, mark: str
) -> None:
    async with open_crib(agents={"small": small(timeout=4)}, **ALLOWED) as crib:
        kind, told = await crib.failure(
            "delegate_to_agent", target_agent="small", subtask=f"hang {mark}"
        )
    assert kind == "timeout"
    assert "still thinking" in told
    assert not survivors(mark)


async def test_a_cancelled_delegation_leaves_nothing_and_is_kept(
    open_crib: Open, mark: str
) -> None:
    async with open_crib(agents={"small": small()}, **ALLOWED) as crib:
        async with anyio.create_task_group() as group:
            group.start_soon(delegated, crib, f"hang {mark}")
            with anyio.fail_after(60):
                while not survivors(mark):
                    await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
        with anyio.fail_after(60):
            found: list[Any] = []
            while not found:
                events = await crib.call("retrieve_event_context", query="")
                found = [each for each in events["events"] if "small cancelled" in each["content"]]
        assert not survivors(mark)


async def test_a_token_opens_nothing_but_its_own_and_only_while_its_agent_works(crib: Any) -> None:
    assert await answer(crib, "forge made-up") == "refused"


async def test_an_agent_is_shown_no_more_than_its_caller_may_and_it_may(open_crib: Open) -> None:
    profile = {"clients": ["*"], "deny": ["write_file"]}
    agents = {"small": small(allow=["read_file", "write_file", "grep"], deny=["grep"])}
    async with open_crib(agents=agents, profiles={"all": profile}, **ALLOWED) as crib:
        to = {"target_agent": "small"}
        listed = await crib.text("delegate_to_agent", subtask="list", **to)
        writing = 'call write_file {"file_path": "a", "content": "b"}'
        told = await crib.text("delegate_to_agent", subtask=writing, **to)
    assert "\nread_file\n" in listed
    assert "write_file is not among the tools of the profile" in told
    assert not (crib.root / "a").exists()


@pytest.mark.parametrize("verb", ["call", "call_by_handshake"])
async def test_an_agent_approves_nothing_itself(open_crib: Open, verb: str) -> None:
    async with open_crib(agents={"small": small()}, policy__ask=("remember",), **ALLOWED) as crib:
        told = await answer(crib, f'{verb} remember {{"content": "Owls are deaf"}}')
    assert "the user has to approve it first" in told


async def test_an_agent_may_delegate_once_more_and_no_deeper(open_crib: Open) -> None:
    async with open_crib(agents={"small": small()}, **ALLOWED) as crib:
        inner = json.dumps({"target_agent": "small", "subtask": "list"})
        names = await answer(crib, f"call delegate_to_agent {inner}")
        assert "read_file" in names
        assert "delegate_to_agent" not in names
        deeper = {"target_agent": "small", "subtask": "x"}
        inner = json.dumps(
            {"target_agent": "small", "subtask": f"call delegate_to_agent {json.dumps(deeper)}"}
        )
        told = await answer(crib, f"call delegate_to_agent {inner}")
    assert "delegate_to_agent is not among the tools of the profile 'agent small'" in told


async def test_what_an_agent_delegates_counts_to_its_callers_ceilings(open_crib: Open) -> None:
    inner = json.dumps({"target_agent": "small", "subtask": "x"})
    async with open_crib(agents={"small": small()}, delegation__count=1, **ALLOWED) as crib:
        told = await answer(crib, f"call delegate_to_agent {inner}")
        assert "1 are allowed (delegation.count)" in told
        assert await answer(crib, "x") == "was told: x"  # of a root of its own


async def test_the_person_is_told_which_agent_and_within_which_limits(open_crib: Open) -> None:
    asked: list[str] = []

    async def refuse(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={"answer": "no"})

    agents = {"small": small(hosts=["api.example.com:443"], max_cost=2)}
    async with (
        open_crib(agents=agents) as crib,
        Client(crib.app.server, elicitation_callback=refuse) as client,
    ):
        refused = await client.call_tool("delegate_task", {"subtask_description": "Paint the wall"})
    assert refused.is_error
    [question] = asked
    assert "Paint the wall" in question
    assert "at most 600 s and $2" in question
    assert "reaches api.example.com:443" in question


async def test_a_task_goes_to_the_agent_that_can_do_it(crib: Any) -> None:
    done = await called(
        crib,
        "delegate_task",
        subtask_description="list",
        required_capabilities=["translate a letter into French"],
        context_hints=["The letter is short"],
    )
    assert done["chosen"].startswith("other: it fits best")
    assert done["results"][0]["report"]["agent"] == "other"


async def test_a_task_can_be_given_through_call_tool(crib: Any) -> None:
    arguments = {"subtask_description": "say this", "agents": ["small"]}
    told = await crib.text("call_tool", name="delegate_task", arguments=arguments)
    assert "\nwas told: say this\n" in told


async def test_several_agents_get_the_same_task_for_comparison(crib: Any) -> None:
    done = await called(
        crib, "delegate_task", subtask_description="fail for both", agents=["small", "other"]
    )
    failures = {each["agent"]: each["failure"] for each in done["results"]}
    assert failures.keys() == {"small", "other"}
    assert all("I could not: for both" in each for each in failures.values())


async def test_nobody_is_asked_about_an_agent_that_there_is_not(open_crib: Open) -> None:
    async with open_crib(agents={"small": small()}) as crib, Client(crib.app.server) as client:
        for name, said in (("smal", "Did you mean: small"), ("small", "approval_required: ")):
            given = {"target_agent": name, "subtask": "x"}
            result = await client.call_tool("delegate_to_agent", given)
            assert said in str(result.content)


async def test_available_agents_says_what_each_may(crib: Any) -> None:
    told = await crib.text("available_agents")
    assert "small: Does small things" in told
    assert "at most 600 s; is confined, reaches no host, may write inside the root." in told
    assert "at most 20, 2 deep, 3600 s and $10 together" in told


async def test_without_an_agent_it_is_said_what_to_configure(
    open_crib: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "codex"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    async with open_crib() as crib:
        kind, told = await crib.failure("delegate_task", subtask_description="x")
    assert kind == "unavailable"
    assert '[agents.NAME] to the settings, with preset = "codex" (installed here: codex)' in told


async def test_an_agent_is_confined_as_its_own_settings_say(open_crib: Open) -> None:
    agents = {"free": small(sandbox="off"), "blind": small(readable=[], sandbox="required")}
    async with open_crib(agents=agents, **ALLOWED) as crib:
        assert (await delegated(crib, "x", "free"))["sandbox"] == "none"
        _, told = await crib.failure("delegate_to_agent", target_agent="blind", subtask="x")
    assert "No such file" in told  # it does not even see its own program


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    root.mkdir()
    (root / "kept.txt").write_text("kept\n")
    for command in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first"],
    ):
        subprocess.run(["git", *command], cwd=root, check=True)  # noqa: S607  # of the machine
    return root


async def test_an_agent_works_in_a_worktree_which_stays_where_it_changed_something(
    open_crib: Open, repository: Path
) -> None:
    agents = {"small": small(worktree=True)}
    async with open_crib(agents=agents, **ALLOWED) as crib:
        unchanged = await delegated(crib, "say nothing")
        changed = await delegated(crib, "write new.txt")
        names = await answer(crib, "list")
    assert "worktree" not in unchanged
    worktree = changed["worktree"]
    assert "+by the agent" in worktree["diff"]
    assert changed["delegation_id"] not in worktree["path"]  # its words are marked with that
    assert (Path(worktree["path"]) / "new.txt").read_text() == "by the agent\n"
    assert not (repository / "new.txt").exists()
    assert [each.name for each in Path(worktree["path"]).parent.iterdir()] == [
        Path(worktree["path"]).name
    ]
    assert "write_file" not in names.split()  # which would write to the root


@pytest.mark.boundary
async def test_a_denied_path_is_hidden_from_agents_in_the_root_and_in_worktrees(
    open_crib: Open, repository: Path
) -> None:
    (repository / "secrets").mkdir()
    (repository / "secrets" / "key").write_text("the key\n")
    (repository / ".env").write_text("the key\n")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "second")
    agents = {"small": small(), "apart": small(worktree=True), "free": small(sandbox="off")}
    deny = ("read(secrets/**)", f"read({repository}/.env)")
    async with open_crib(agents=agents, policy__deny=deny, **ALLOWED) as crib:
        for name in ("small", "apart"):
            for path in ("secrets/key", ".env"):
                assert await answer(crib, f"read {path}", name) == "failed: Permission denied"
            report = await delegated(crib, "read kept.txt", name)
            assert (report["answer"], report.get("worktree")) == ("kept", None)
        done = await crib.app.manager.execute(
            "delegate_to_agent",
            {"target_agent": "free", "subtask": "read secrets/key"},
            crib.app.context,
        )
    assert done.is_error
    assert f"the rule 'read({repository}/.env)' (settings) is not enforced" in done.text
    assert "the key" not in done.text


@pytest.mark.boundary
async def test_rules_hold_in_a_worktree_of_a_root_below_the_top_of_its_repository(
    open_crib: Open, tmp_path: Path
) -> None:
    (tmp_path / "root" / "secrets").mkdir(parents=True)
    (tmp_path / "root" / "secrets" / "key").write_text("the key")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "root")
    git(tmp_path, "commit", "-qm", "first")
    agents = {"small": small(worktree=True)}
    async with open_crib(agents=agents, policy__deny=("read(secrets/**)",), **ALLOWED) as crib:
        assert await answer(crib, "read secrets/key") == "failed: Permission denied"


async def test_a_repository_that_an_agent_makes_runs_nothing_outside_of_its_confinement(
    open_crib: Open, repository: Path, tmp_path: Path
) -> None:
    agents = {"small": small(worktree=True)}
    pwned = tmp_path / "pwned"
    async with open_crib(agents=agents, **ALLOWED) as crib:
        report = await delegated(crib, f"trap {pwned}")
    assert report["answer"] == "set"
    assert not pwned.exists()


def review(prompt: str) -> str:
    """Reviews what it is given."""
    if "impossible" in prompt:
        raise ValueError("Nobody can review that.")
    return f"Looks fine: {prompt.splitlines()[0]}"


async def test_a_tool_of_another_server_can_be_an_agent(open_crib: Open) -> None:
    own = OwnServer([review], name="reviewer", version="1", instructions="")
    caller = Caller("crib", None)
    async with own.running(), serve_one(own.mcp, caller, "a-token") as address:
        server = {"url": f"http://{address}/mcp", "token": "a-token", "transport": "http"}
        settings = {
            "servers": {"remote": server},
            "agents": {"reviewer": {"server": "remote", "tool": "review"}},
            "policy__allow": ("delegate_to_agent", "remote__review"),
        }
        async with open_crib(**settings) as crib:
            report = await delegated(crib, "look at this", "reviewer")
            assert report["answer"].endswith("Looks fine: Task: look at this")
            kind, told = await crib.failure(
                "delegate_to_agent", target_agent="reviewer", subtask="impossible"
            )
    assert kind == "upstream_failed"
    assert "Nobody can review that." in told


async def test_an_endpoint_answers_nobody_without_its_token() -> None:
    own = OwnServer([review], name="reviewer", version="1", instructions="")
    async with (
        own.running(),
        serve_one(own.mcp, Caller("crib", None), "a-token") as address,
        httpx2.AsyncClient() as http,
    ):
        for token in ("a-toke", "another"):
            headers = {"Authorization": f"Bearer {token}"}
            answered = await http.post(f"http://{address}/mcp", headers=headers, json={})
            assert answered.status_code == 401
    with pytest.raises(httpx2.ConnectError):
        async with httpx2.AsyncClient() as http:
            await http.post(f"http://{address}/mcp")


async def test_a_toolcrib_that_an_agent_starts_itself_is_held_to_its_token(tmp_path: Path) -> None:
    from server.app import build
    from server.settings.sources import load

    (tmp_path / "root").mkdir()
    app = build(
        load(
            {"data_dir": tmp_path / "data", "root": tmp_path / "root"},
            environ={"TOOLCRIB_CONFIG": ""},
        )
    )
    new = NewDelegation(
        agent="small",
        identity=app.identity,
        session_id="home",
        tools=(("agent small", ("remember", "read_todos", "bash"), ("bash",)),),
        seconds=300,
    )
    begun, token = app.library.delegations.begin(new, Ceilings())
    command = StdioServerParameters(
        command=str(command_path()),
        args=["serve", "--root", f"{tmp_path}/root", "--data-dir", f"{tmp_path}/data"],
        env={
            "_TOOLCRIB_DELEGATION": token,
            "TOOLCRIB_SURFACE": "full",
            "TOOLCRIB_POLICY__ASK": "read_todos",
        },
    )
    async with Client(command, elicitation_callback=agree) as client:
        listed = {each.name for each in (await client.list_tools()).tools}
        assert listed == {"remember", "read_todos"}
        refused = await client.call_tool("delegate_task", {"subtask_description": "x"})
        assert "not among the tools of the profile 'agent small'" in str(refused.content)
        refused = await client.call_tool("read_todos", {})
        assert "the user has to approve it first" in str(refused.content)
        other = {"content": "Otters hold hands", "user_id": "bob"}
        refused = await client.call_tool("remember", other)
        assert "is not yours" in str(refused.content)
    app.library.delegations.finish(begun.id, cost=0, outcome="answered")
    app.library.close()
    for wrong in (token, begun.id, ""):
        env = {**os.environ, "_TOOLCRIB_DELEGATION": wrong}
        ended = await anyio.run_process(
            [command.command, *command.args], env=env, check=False, input=b""
        )
        assert ended.returncode
        assert b"is not the token of a running agent" in ended.stderr


async def test_a_delegation_that_takes_long_goes_on_as_a_task(open_crib: Open) -> None:
    async with open_crib(patience=0.1, agents={"small": small()}, **ALLOWED) as crib:
        told = await crib.text("delegate_task", subtask_description="say this")
        task = told.partition("as task ")[2][:32]
        done = await crib.text("get_task", task_id=task)
    assert "was told: say this" in done


async def test_a_toolcrib_of_an_agent_has_one_conversation_over_http_too() -> None:
    sessions = Sessions(only="of-the-agent")
    own = OwnServer([review], name="reviewer", version="1", instructions="")
    seen: list[str] = []

    async def note(ctx: Any, call_next: Any) -> Any:
        seen.append(sessions.of(ctx, Identity()).session_id)
        return await call_next(ctx)

    own.mcp.middleware.append(note)
    async with own.running(), serve_one(own.mcp, Caller("crib", None), "a-token") as address:
        headers = {"Authorization": "Bearer a-token"}
        async with (
            httpx2.AsyncClient(headers=headers) as http,
            Client(streamable_http_client(f"http://{address}/mcp", http_client=http)) as client,
        ):
            await client.list_tools()
    assert set(seen) == {"of-the-agent"}


def git(repository: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
    done = subprocess.run(command, cwd=repository, check=True, capture_output=True, text=True)
    return done.stdout.strip()


async def test_a_filter_that_a_repository_names_runs_for_no_worktree(
    open_crib: Open, repository: Path, tmp_path: Path
) -> None:
    pwned = tmp_path / "pwned"
    (repository / ".gitattributes").write_text("* filter=a.hostile\n")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "second")
    git(repository, "config", "filter.a.hostile.smudge", f"touch {pwned}; cat")
    git(repository, "config", "filter.a.hostile.clean", "cat")
    git(repository, "config", "filter.a.hostile.required", "true")
    async with open_crib(agents={"small": small(worktree=True)}, **ALLOWED) as crib:
        assert "worktree" not in await delegated(crib, "say nothing")
        git(repository, "config", "filter.a=b.smudge", f"touch {pwned}")
        _, told = await crib.failure("delegate_to_agent", target_agent="small", subtask="x")
    assert "No git worktree is made of a repository that sets 'filter.a=b'" in told
    assert not pwned.exists()


async def test_what_a_repository_lacks_is_fetched_for_no_worktree(
    open_crib: Open, repository: Path, tmp_path: Path
) -> None:
    pwned = tmp_path / "pwned"
    blob = git(repository, "rev-parse", "HEAD:kept.txt")
    (repository / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    for key, value in {
        "core.repositoryformatversion": "1",
        "extensions.partialClone": "hostile",
        "remote.hostile.url": str(tmp_path),
        "remote.hostile.promisor": "true",
        "remote.hostile.uploadpack": f"touch {pwned}",
    }.items():
        git(repository, "config", key, value)
    async with open_crib(agents={"small": small(worktree=True)}, **ALLOWED) as crib:
        _, told = await crib.failure("delegate_to_agent", target_agent="small", subtask="x")
    assert "No git worktree can be made of the root" in told
    assert not pwned.exists()
    assert os.listdir(tmp_path / "data-worktrees") == []  # noqa: PTH208  # blocks for no time
    assert len(git(repository, "worktree", "list").splitlines()) == 1
