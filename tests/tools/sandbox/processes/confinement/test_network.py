"""The hosts that confined programs reach: those of the list, through the proxy, and no others."""

from __future__ import annotations

import http.server
import os
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tools.sandbox.files.sandbox import Sandbox
from tools.sandbox.processes.confinement.network import AllowedHosts
from tools.sandbox.processes.models import Command, Level, Limits, SandboxMode
from tools.sandbox.processes.processes import Processes, inherited_variables
from tools.sandbox.web.guard import AddressGuard

pytestmark = pytest.mark.boundary

linux = pytest.mark.skipif(sys.platform != "linux", reason="its levels are Linux's")


class Page(http.server.BaseHTTPRequestHandler):
    """Answers every request."""

    def do_GET(self) -> None:  # the name that the base looks for
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"the page")

    def log_message(self, *_args: object) -> None: ...


@pytest.fixture
def ports() -> Iterator[tuple[int, int]]:
    """Two servers on loopback."""
    servers = [http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) for _ in range(2)]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    yield servers[0].server_port, servers[1].server_port
    for server in servers:
        server.shutdown()
        server.server_close()


@asynccontextmanager
async def opened(
    tmp_path: Path, level: Level, network: list[str], private: list[str]
) -> AsyncIterator[Processes]:
    root = tmp_path / "root"
    root.mkdir(exist_ok=True)
    processes = Processes(
        root=root,
        protected=[],
        read_only=[],
        mode=SandboxMode.REQUIRED,
        limits=Limits(),
        environment=inherited_variables(os.environ),
        readable=[],
        network=network,
        sandbox=Sandbox(root),
        git_config=bytes,
        data_dir=tmp_path / "data",
        guard=lambda: AddressGuard(private),
    )
    known = processes._levels._confinements
    processes._levels._confinements = {level: known[level]}
    try:
        yield processes
    finally:
        await processes.aclose()


async def run(processes: Processes, script: str, *, network: bool = True) -> tuple[str, str]:
    program = await processes.start(Command(argv=("bash", "-c", script), network=network))
    await program.wait()
    output = b"".join(os.read(fd, 1 << 16) for fd in (program.stdout, program.stderr)).decode()
    await program.aclose()
    return output, "\n".join(program.notes)


CONNECT = (
    "exec 3<> /dev/tcp/127.0.0.1/3128; printf 'CONNECT {} HTTP/1.1\\r\\n\\r\\n' >&3; "
    "printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3"
)
UNIX = (
    "python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); "
    's.connect("/tmp/.toolcrib-proxy"); print("the page")\''
)
UDP = (
    "python3 -c 'import socket; s = socket.socket(2, 2); s.settimeout(1); "
    's.sendto(b"x", ("192.0.2.1", 53)); print("the page")\''
)
URLLIB = "python3 -c 'import urllib.request as u; print(u.urlopen(\"http://{}/\").read())'"


@linux
@pytest.mark.anyio
async def test_allowed_hosts_are_reached_and_no_others(
    tmp_path: Path, ports: tuple[int, int]
) -> None:
    here, other = (f"localhost:{port}" for port in ports)
    async with opened(tmp_path, Level.BUBBLEWRAP, [here], [here, other]) as processes:
        for reaching in (
            f"curl -s http://{here}/",
            f"curl -s --proxytunnel http://{here}/",
            URLLIB.format(here),
        ):
            assert "the page" in (await run(processes, reaching))[0], reaching
        address = f"127.0.0.1:{ports[0]}"
        for refused in (
            f"curl -sS -m 9 http://{other}/",
            f"curl -sS -m 9 --proxytunnel http://{other}/",
            URLLIB.format(other),
            f"curl -sS -m 9 http://{address}/",
            f"curl -sS -m 9 --noproxy '*' http://{here}/",
            f"curl -sS -m 9 --noproxy '*' http://{address}/",
            f"exec 3<> /dev/tcp/127.0.0.1/{ports[0]} && echo 'GET /' >&3 && cat <&3",
            CONNECT.format(other),
            UNIX,
            "getent ahosts example.com && echo the page",
            UDP,
        ):
            assert "the page" not in (await run(processes, refused))[0], refused
        assert "the page" not in (await run(processes, f"curl -s http://{here}/", network=False))[0]


@linux
@pytest.mark.anyio
async def test_an_allowed_host_with_a_private_address_needs_its_own_setting(
    tmp_path: Path, ports: tuple[int, int]
) -> None:
    here = f"localhost:{ports[0]}"
    async with opened(tmp_path, Level.BUBBLEWRAP, [here], []) as processes:
        output, _ = await run(processes, f"curl -s http://{here}/")
    assert "the page" not in output
    assert "not a public address" in output


@linux
@pytest.mark.anyio
async def test_the_exit_code_and_the_input_are_the_programs_own(
    tmp_path: Path, ports: tuple[int, int]
) -> None:
    here = f"localhost:{ports[0]}"
    async with opened(tmp_path, Level.BUBBLEWRAP, [here], [here]) as processes:
        for argv, code in (
            (("bash", "-c", "exit 3"), 3),
            (("bash", "-c", "kill -9 $$"), 137),
            (("cat",), 0),
        ):
            program = await processes.start(Command(argv=argv, stdin=b"given"))
            assert await program.wait() == code
            assert os.read(program.stdout, 10) == (b"given" if argv == ("cat",) else b"")
            await program.aclose()


@linux
@pytest.mark.anyio
async def test_landlock_runs_without_network_and_says_so(
    tmp_path: Path, ports: tuple[int, int]
) -> None:
    here = f"localhost:{ports[0]}"
    async with opened(tmp_path, Level.LANDLOCK, [here], [here]) as processes:
        output, notes = await run(processes, f"curl -s http://{here}/")
    assert "the page" not in output
    assert "needs bubblewrap" in notes


@pytest.mark.parametrize(
    ("host", "port", "allowed"),
    [
        ("example.com", 443, True),
        ("example.com", 80, False),
        ("www.example.com", 443, False),
        ("example.com.evil.org", 443, False),
        ("evilexample.com", 443, False),
        ("a.example.org", 8080, True),
        ("a.b.example.org", 8080, True),
        ("example.org", 8080, False),
        ("notexample.org", 8080, False),
        ("a.example.org", 80, False),
        ("::1", 8000, True),
        ("127.0.0.1", 8000, False),
    ],
)
def test_hosts_are_allowed_by_pattern(host: str, port: int, *, allowed: bool) -> None:
    hosts = AllowedHosts(["Example.com:443", "*.example.org:8080", "[::1]:8000"])
    assert hosts(host, port) is allowed
