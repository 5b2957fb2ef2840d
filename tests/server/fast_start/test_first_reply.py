"""What is answered before the SDK is there, beside what its server answers to the same line."""

import json
from collections.abc import AsyncIterator, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.server.lowlevel import Server
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from server.app import build
from server.fast_start.first_reply import FirstReply, changing_lists, reply_to
from server.settings.sources import load
from server.transport.jsonrpc import messages

VERSION = version("toolcrib")
CLIENT = {"name": "test", "version": "1"}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}
SERVERS = """
[servers.one]
command = "one"
"""


def initialize(wanted: str = "2025-11-25", **changed: Any) -> dict[str, Any]:
    params = {"protocolVersion": wanted, "capabilities": {}, "clientInfo": CLIENT}
    return {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {**params, **changed}}


def discover(**changed: Any) -> dict[str, Any]:
    params = {"_meta": {**ENVELOPE, **changed}}
    return {"jsonrpc": "2.0", "id": "a", "method": "server/discover", "params": params}


def early(line: bytes, *changing: str) -> Any:
    """The reply without the SDK, decoded."""
    reply = reply_to(line, VERSION, changing)
    return None if reply is None else json.loads(reply.line)


def from_server(server: Server[Any], line: bytes) -> Any:
    """The SDK's server's reply to the same line, as it goes to the client."""
    written: list[bytes] = []

    async def source() -> AsyncIterator[bytes]:
        yield line

    async def write(data: bytes) -> None:
        written.append(data)

    async def run() -> None:
        reader, writer = messages(source(), write)
        await server.run(reader, writer, server.create_initialization_options())

    anyio.run(run)
    return json.loads(written[0])


def made(directory: Path, config: str = "") -> Iterator[Server[Any]]:
    file = directory / "config.toml"
    file.write_text(config)
    given = {"root": directory, "data_dir": directory / "data"}
    app = build(load(given, config_file=file, environ={}))
    yield app.server
    app.library.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server[Any]]:
    yield from made(tmp_path_factory.mktemp("alone"))


@pytest.mark.parametrize("wanted", [*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_PROTOCOL_VERSIONS, "1"])
def test_a_handshake_is_answered_as_the_server_does(server: Server[Any], wanted: str) -> None:
    line = json.dumps(initialize(wanted)).encode()
    assert early(line, "resources") == from_server(server, line)


@pytest.mark.parametrize("revision", MODERN_PROTOCOL_VERSIONS)
def test_a_discovery_is_answered_as_the_server_does(server: Server[Any], revision: str) -> None:
    message = discover(**{"io.modelcontextprotocol/protocolVersion": revision})
    line = json.dumps(message).encode()
    assert early(line, "resources") == from_server(server, line)


@pytest.mark.parametrize(
    "config",
    [
        SERVERS,
        SERVERS + "enabled = false\n[servers.two]\ncommand = 'two'",
        "surface = ['full']",
        "[profiles.small]\nclients = ['*']\npinned = ['read_file']",
        f"[functions]\npaths = ['{__file__}']",
        SERVERS + f"enabled = false\n[functions]\npaths = ['{__file__}']",
        "[functions]\npaths = []\nmemory_mb = 100",
    ],
)
@pytest.mark.parametrize("message", [initialize(), discover()], ids=["initialize", "discover"])
def test_what_the_settings_change_is_said(
    tmp_path: Path, config: str, message: dict[str, Any]
) -> None:
    line = json.dumps(message).encode()
    for server in made(tmp_path, config):
        changing = changing_lists(tmp_path / "config.toml", {})
        assert changing is not None
        assert early(line, *changing) == from_server(server, line)


OFFERS: list[Any] = [
    {},
    None,
    [],
    {"roots": {}},
    {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {}},
    {"roots": {"listChanged": {}}},
    {"roots": {"listChanged": 1}},
    {"roots": True},
    {"sampling": {"tools": {}, "context": {}}},
    {"sampling": {"tools": True}},
    {"elicitation": {"form": {"applyDefaults": True}, "url": {}}},
    {"elicitation": {"form": []}},
    {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html"]}}},
    {"extensions": {"io.modelcontextprotocol/ui": True}},
    {"experimental": {"x": {"y": "z"}}},
    {"experimental": {"x": 1}},
    {"tasks": {"list": {}}},
    {"unheard-of": {}},
]
CLIENTS: list[Any] = [
    CLIENT,
    {**CLIENT, "title": "Test ✓", "websiteUrl": "no url"},
    {**CLIENT, "icons": "none"},
    {**CLIENT, "title": None},
    {"name": "test"},
    {"name": 1, "version": "1"},
    {},
    None,
]
IDS: list[Any] = [0, -1, 2**53, 2**70, True, None, 1.0, "", "ü", "\ud800", [], {}]


MORE: list[Any] = [None, 1, "2.0", {}, {"progressToken": 1}]


def openings() -> Iterator[bytes]:
    """First lines, each with one thing about it that not every server takes."""
    for offered in OFFERS:
        yield encoded(initialize(capabilities=offered))
        yield encoded(discover(**{"io.modelcontextprotocol/clientCapabilities": offered}))
    for client in CLIENTS:
        yield encoded(initialize(clientInfo=client))
        yield encoded(discover(**{"io.modelcontextprotocol/clientInfo": client}))
    for wanted in (None, 1, "", "2025-11-25", "2099-01-01"):
        yield encoded(initialize(protocolVersion=wanted))
        yield encoded(discover(**{"io.modelcontextprotocol/protocolVersion": wanted}))
    for plain in (initialize(), discover()):
        yield from (encoded({**plain, "id": given}) for given in IDS)
        for place in (plain, plain["params"], plain["params"].get("_meta", {})):
            for name in (*place, "_meta", "more", "progressToken"):
                kept = place.pop(name, None)
                yield encoded(plain)
                for place[name] in MORE:
                    yield encoded(plain)
                place[name] = kept
                if kept is None:
                    del place[name]
        line = encoded(plain)
        yield from (
            line + b"\r",
            b" " + line,
            line[:-1],
            b"[" + line + b"]",
            b"\xef\xbb\xbf" + line,
        )


def encoded(message: dict[str, Any]) -> bytes:
    return json.dumps(message, ensure_ascii=False).encode(errors="surrogatepass")


def test_whatever_is_answered_early_is_answered_the_same(server: Server[Any]) -> None:
    lines = [line for line in openings() if early(line) is not None]
    assert len(lines) > len(OFFERS)
    for line in lines:
        assert early(line, "resources") == from_server(server, line)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\xff",
        b"{",
        b"[" * 100_000,
        b'{"jsonrpc":"2.0","id":1,"method":"ping"}',
        json.dumps(initialize()).replace("0,", '0,"id":1,').encode(),
        json.dumps(initialize(_meta={})).encode(),
        json.dumps([initialize()]).encode(),
    ],
)
def test_what_is_not_surely_an_opening_is_left_to_the_server(line: bytes) -> None:
    assert reply_to(line, VERSION, ()) is None


def test_a_reply_tells_whose_it_is() -> None:
    reply = reply_to(json.dumps(discover()).encode(), VERSION, ())
    assert isinstance(reply, FirstReply)
    assert reply.request == "a"


def lists(directory: Path, *, config: str = "", **environ: str) -> object:
    file = directory / "config.toml"
    file.write_text(config)
    return changing_lists(None, {"TOOLCRIB_CONFIG": str(file), **environ})


def test_without_other_servers_skills_and_created_tools_change_what_they_are_listed_in(
    tmp_path: Path,
) -> None:
    assert lists(tmp_path) == ("resources",)
    assert lists(tmp_path, config="surface = ['full']") == ("resources", "tools")


def test_other_servers_change_what_they_are_listed_in(tmp_path: Path) -> None:
    assert lists(tmp_path, config=SERVERS) == ("prompts", "resources")


def test_function_files_change_every_list(tmp_path: Path) -> None:
    every = ("prompts", "resources", "tools")
    assert lists(tmp_path, config="[functions]\npaths = ['a.py']\n" + SERVERS) == every
    file = tmp_path / "config.toml"
    file.write_text("surface = ['full']")
    assert changing_lists(file, {}, functions=True) == every


@pytest.mark.parametrize(
    "config",
    [
        *("surface = ['full']\n" + SERVERS, SERVERS + "[profiles.small]\nclients = ['*']"),
        *(SERVERS + "enabled = false", "servers = 1", "functions = 1"),
        *("[functions]\npaths = 'a.py'", "no toml"),
    ],
)
def test_settings_that_need_more_than_the_file_are_left_to_the_server(
    tmp_path: Path, config: str
) -> None:
    assert lists(tmp_path, config=config) is None


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("TOOLCRIB_SERVERS", "{}"),
        ("TOOLCRIB_servers", "{}"),
        ("TOOLCRIB_SURFACE", "full"),
        ("TOOLCRIB_PROFILES", "{}"),
        ("_TOOLCRIB_DEPTH", "3"),
        ("TOOLCRIB_FUNCTIONS__PATHS", "garden.py"),
    ],
)
def test_so_are_variables_that_say_otherwise(tmp_path: Path, variable: str, value: str) -> None:
    assert lists(tmp_path, config=SERVERS, **{variable: value}) is None
    assert lists(tmp_path, config=SERVERS, **{variable: ""}) == ("prompts", "resources")


def test_a_file_that_is_named_and_missing_is_left_to_the_server(tmp_path: Path) -> None:
    assert changing_lists(tmp_path / "missing.toml", {}) is None


def test_the_usual_file_need_not_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert changing_lists(None, {}) == ("resources",)
