"""Secret arguments over the real server: nothing that it leaves behind has them."""

import sys
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from server.clients.locations import command_path

pytestmark = pytest.mark.slow

MARK = "Zq7hunter2"
"""What each secret has in it."""
WITNESS = "Zq7witness"
"""What is no secret, and is recorded."""

FUNCTIONS = """
from typing import Annotated
from pydantic import BaseModel, Field, Json, Secret, SecretBytes, SecretStr
from tools.core.spec import tool

class Account(BaseModel):
    user: str
    password: SecretStr

class Door(BaseModel):
    code: str

Token = Annotated[str, Field(json_schema_extra={"writeOnly": True})]

@tool
def login(
    user: str,
    password: SecretStr,
    account: Account | Door | None = None,
    accounts: dict[str, list[Account]] | None = None,
    keys: list[SecretBytes] = [],
    token: Token = "changeme",
    named: Json[Account] | None = None,
    number: Secret[int] | None = None,
) -> str:
    return f"{user} {password.get_secret_value()} {token}"

@tool
def fail(password: SecretStr) -> str:
    raise RuntimeError(f"cannot log in with {password.get_secret_value()!r}")

@tool
def refuse(password: SecretStr) -> str:
    raise ValueError(f"{password.get_secret_value()} is too weak")

@tool
def mistake(password: SecretStr) -> int:
    return password.get_secret_value()

@tool(confirmation="required")
def pay(card: SecretStr, to: str) -> str:
    return to
"""

OTHER = """
from mcp.server import MCPServer
from pydantic import BaseModel, SecretStr

server = MCPServer("vault", log_level="CRITICAL")  # what it prints itself is its own affair

class Lock(BaseModel):
    pin: SecretStr

@server.tool()
def unlock(lock: Lock, note: str = "") -> str:
    if note == "fail":
        raise ValueError(lock.pin.get_secret_value())
    return lock.pin.get_secret_value()

server.run()
"""

SETTINGS = """
[policy]
allow = ["*"]
ask = ["pay"]

[log]
level = "DEBUG"

[functions]
paths = ["{functions}"]

[servers.vault]
command = "{python}"
args = ["{other}"]
"""


def secret(of: list[int] = [0]) -> str:  # noqa: B006  # each is another
    of[0] += 1
    return f"{MARK}-{of[0]}"


def logins() -> Iterator[dict[str, Any]]:
    """Arguments of `login`, right and wrong."""
    ann = {"user": WITNESS, "password": secret()}
    yield ann
    yield {
        **ann,
        "account": {"user": "ann", "password": secret()},
        "accounts": {"home": [{"user": "ann", "password": secret()}]},
        "keys": [secret(), secret()],
        "token": secret(),
        "named": f'{{"user": "ann", "password": "{secret()}"}}',
        "number": 2718281828459045,
    }
    yield {**ann, "account": f'{{"user": "ann", "password": "{secret()}"}}'}
    for wrong in (
        {"user": 5},
        {"password": [secret()]},
        {"pasword": secret()},
        {"secrets": {"inner": [secret()]}},
        {"account": {"user": "ann", "password": secret(), "note": secret()}},
        {"account": {"user": 5, "password": secret()}},
        {"account": {"usr": "ann", "pass": secret()}},
        {"account": [secret()]},
        {"account": f'{{"user": "ann", "password": "{secret()}"'},
        {"accounts": {"home": {"user": "ann", "password": secret()}}},
        {"accounts": f"{secret()}{'x' * 200}"},
        {"keys": secret()},
        {"keys": [{"key": secret()}]},
        {"named": {"user": "ann", "password": secret()}},
        {"number": secret()},
        {"token": {"value": secret()}},
    ):
        yield {**ann, **wrong}


def calls() -> Iterator[tuple[str, Any]]:
    for arguments in logins():
        yield "login", arguments
        yield "call_tool", {"name": "login", "arguments": arguments}
    one = {"password": secret()}
    for name in ("fail", "refuse", "mistake", "fial"):
        yield name, one
        yield "call_tool", {"name": name, "arguments": one}
    yield "pay", {"card": secret(), "to": WITNESS}
    yield "call_tool", {"name": "pay", "arguments": {"card": secret(), "to": WITNESS}}
    yield "call_tool", {"name": "login", "arguments": f'{{"password": "{secret()}"'}
    yield "call_tool", {"nmae": "login", "arguments": one, "password": secret()}
    batch = [{"name": "fail", "arguments": one}, {"name": "login", "arguments": {"pin": secret()}}]
    yield "call_tools", {"calls": batch}
    yield "call_tools", {"calls": [{"name": "fail", "arguments": f'{{"password": "{secret()}'}]}
    yield "call_tools", {"calls": f'[{{"name": "fail", "arguments": {{"password": "{secret()}"'}
    for wrong in ({}, {"note": "fail"}, {"note": 5}, {"lock": [secret()]}, {"lok": secret()}):
        arguments = {"lock": {"pin": secret()}, "note": WITNESS, **wrong}
        yield "vault__unlock", arguments
        yield "call_tools", {"calls": [{"name": "vault__unlock", "arguments": arguments}]}


def left_behind(folder: Path) -> bytes:
    found = [path for path in folder.rglob("*") if path.is_file()]
    return b"".join(path.read_bytes() for path in found)


async def test_no_secret_argument_is_in_anything_that_the_server_leaves_behind(
    tmp_path: Path, mode: str
) -> None:
    (tmp_path / "root").mkdir()
    functions, other = tmp_path / "made" / "bank.py", tmp_path / "other.py"
    functions.parent.mkdir()
    functions.write_text(FUNCTIONS)
    other.write_text(OTHER)
    config = tmp_path / "config.toml"
    config.write_text(SETTINGS.format(functions=functions, python=sys.executable, other=other))
    left = tmp_path / "left"
    left.mkdir()
    server = StdioServerParameters(
        command=str(command_path()),
        args=["serve", "--root", str(tmp_path / "root"), "--data-dir", str(left / "data")],
        env={"TOOLCRIB_CONFIG": str(config)},
    )
    ours: list[tuple[str, str]] = []
    with (left / "stderr").open("w") as errors:
        async with Client(stdio_client(server, errlog=errors), mode=mode) as client:
            for name, arguments in calls():
                result = await client.call_tool(name, arguments)
                if result.is_error and "vault" not in str((name, arguments)):
                    ours.append((name, result.model_dump_json()))
            while_it_runs = left_behind(left)
    assert len(ours) > 40
    assert [each for each in ours if MARK in each[1]] == []
    for kept in (while_it_runs, left_behind(left)):
        assert WITNESS.encode() in kept
        assert MARK.encode() not in kept
        assert b"2718281828459045" not in kept
        for before in range(3):
            encoded = b64encode(bytes(before) + MARK.encode() * 2)[4:-8]
            assert encoded not in kept
    assert b"cannot log in with '[redacted]'" in kept
