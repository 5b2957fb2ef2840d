"""What confined programs reach: each other in a session, the hosts of the list, and nobody else."""

import http.server
import os
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import anyio
import pytest

from tests.tools.sandbox.processes.conftest import opened as open_at
from tests.tools.sandbox.processes.conftest import run_script
from tools.sandbox.processes.confinement import network
from tools.sandbox.processes.models import Command, Level
from tools.sandbox.processes.output import Program
from tools.sandbox.processes.processes import Processes
from tools.sandbox.web.guard import AddressGuard, resolve_by_system

pytestmark = [
    pytest.mark.slow,
    pytest.mark.boundary,
    pytest.mark.skipif(sys.platform != "linux", reason="its levels are Linux's"),
]

LEVELS = pytest.mark.parametrize("level", [Level.BUBBLEWRAP, Level.LANDLOCK])

OURS = ("somebody", "conversation")


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


FOREIGN = "elsewhere.example"
"""A name of this machine that programs do not know as such."""


def _resolve(host: str, port: int) -> list[str]:
    return ["127.0.0.1"] if host == FOREIGN else resolve_by_system(host, port)


@asynccontextmanager
async def opened(
    tmp_path: Path, level: Level, allowed: list[str] | None = None, private: list[str] | None = None
) -> AsyncIterator[Processes]:
    root = tmp_path / "root"
    root.mkdir(exist_ok=True)
    guard = partial(AddressGuard, private or [], resolver=_resolve)
    async with open_at(root, level, network=allowed or [], guard=guard) as processes:
        yield processes


async def run(
    processes: Processes, script: str, session: tuple[str, ...] = OURS
) -> tuple[str, str]:
    """What a script printed, and what there is to say of it."""
    _, output, notes = await run_script(processes, script, session=session)
    return output, notes


SERVER = """
import http.server, sys
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"the page")
    def log_message(self, *_): pass
server = http.server.HTTPServer(("127.0.0.1", 8000), Page)
print("ready", flush=True)
server.serve_forever()
"""

ASK = "curl -sS -m 9 http://{}:8000/"


@asynccontextmanager
async def serving(
    processes: Processes, session: tuple[str, ...] = OURS, **variables: str
) -> AsyncIterator[Program]:
    """A server in the background, at port 8000 of its session's loopback."""
    argv = ("python3", "-c", SERVER)
    program = await processes.start(Command(argv=argv, environment=variables, session=session))
    try:
        with anyio.fail_after(20):
            await anyio.wait_readable(program.stdout)
        assert os.read(program.stdout, 100) == b"ready\n"
        yield program
    finally:
        await program.aclose()


# One network for the programs of a session


@LEVELS
async def test_a_server_in_the_background_is_reached_by_the_next_program(
    tmp_path: Path, level: Level
) -> None:
    async with opened(tmp_path, level) as processes:
        async with serving(processes):
            for name in ("127.0.0.1", "localhost"):
                assert await run(processes, ASK.format(name)) == ("the page", "")
            async with serving(processes, ("somebody", "another")):  # its port is its own
                assert (await run(processes, ASK.format("127.0.0.1")))[0] == "the page"
        assert "the page" not in (await run(processes, ASK.format("127.0.0.1")))[0]


@LEVELS
async def test_nobody_else_reaches_it(tmp_path: Path, level: Level) -> None:
    async with opened(tmp_path, level) as processes, serving(processes):
        for other in (("somebody", "another"), ("another", "conversation"), ("another", ""), ()):
            assert "the page" not in (await run(processes, ASK.format("127.0.0.1"), other))[0]
        outside = await anyio.run_process(["bash", "-c", ASK.format("127.0.0.1")], check=False)
        assert b"the page" not in outside.stdout


def python(script: str) -> str:
    return f"python3 -c 'import socket; {script}; print(\"reached\")'"


OUTSIDE = {
    "TCP": "exec 3<> /dev/tcp/127.0.0.1/{tcp} && echo reached",
    "UDP": python(
        's = socket.socket(2, 2); s.connect(("127.0.0.1", {udp})); s.settimeout(2); '
        's.send(b"x"); s.recv(1)'
    ),
    "an abstract socket": python('socket.socket(1).connect("\\x00{name}")'),
    "the network": python('socket.socket(2, 2).sendto(b"x", ("192.0.2.1", 53))'),
    "its namespace": "nsenter --net=/proc/self/ns/net echo reached",
    "another program's namespace": "nsenter --net=/proc/{pid}/ns/net echo reached",
    "a namespace of its own": "unshare --net echo reached",
    "the state of loopback": "ip link set lo down && echo reached",
    "an address": "ip address add 192.0.2.1/24 dev lo && echo reached",
}


@pytest.fixture
def outside() -> Iterator[dict[str, object]]:
    """What listens on this machine, and this process."""
    name = uuid.uuid4().hex
    answering = "127.0.0.1", 0
    with (
        socket.create_server(answering) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        udp.bind(answering)
        abstract.bind(f"\0{name}")
        abstract.listen()

        def answer() -> None:
            while True:
                data, sender = udp.recvfrom(16)
                udp.sendto(b"!", sender)
                if not data:
                    return

        thread = threading.Thread(target=answer)
        thread.start()
        yield {
            "tcp": tcp.getsockname()[1],
            "udp": udp.getsockname()[1],
            "name": name,
            "pid": os.getpid(),
        }
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", udp.getsockname())
        thread.join()


@LEVELS
async def test_nothing_of_the_machine_is_reached_from_a_sessions_network(
    tmp_path: Path, level: Level, outside: dict[str, object]
) -> None:
    reached = []
    async with opened(tmp_path, level) as processes:
        for name, script in OUTSIDE.items():
            filled = script
            for key, value in outside.items():
                filled = filled.replace(f"{{{key}}}", str(value))
            if "reached" in (await run(processes, filled))[0]:
                reached.append(name)
        async with serving(processes):  # nor has anything of it broken the network
            assert (await run(processes, ASK.format("127.0.0.1")))[0] == "the page"
    assert reached == []


async def test_each_way_out_is_one_outside(outside: dict[str, object]) -> None:
    for name in ("TCP", "UDP", "an abstract socket"):
        script = OUTSIDE[name]
        for key, value in outside.items():
            script = script.replace(f"{{{key}}}", str(value))
        ended = await anyio.run_process(["bash", "-c", script], check=False)
        assert b"reached" in ended.stdout, (name, ended)


@LEVELS
async def test_a_program_has_no_descriptor_of_its_network(tmp_path: Path, level: Level) -> None:
    async with opened(tmp_path, level, ["example.com:443"]) as processes:
        output, _ = await run(processes, "ls -l /proc/self/fd")
    assert "net:" not in output
    assert "user:" not in output
    assert "socket:" not in output


@LEVELS
async def test_a_network_ends_with_its_server_however_that_ends(
    tmp_path: Path, level: Level
) -> None:
    script = (
        "import anyio, os, sys; from pathlib import Path; "
        "from tests.tools.sandbox.processes.confinement import test_network as t; "
        "from tools.sandbox.processes.models import Level\n"
        "async def main():\n"
        "    async with t.opened(Path(sys.argv[1]), Level(sys.argv[2])) as processes:\n"
        "        async with t.serving(processes, MARKER=sys.argv[3]) as program:\n"
        "            print((await t.run(processes, 'readlink /proc/self/ns/net'))[0], flush=True)\n"
        "            await anyio.sleep_forever()\n"
        "anyio.run(main)"
    )
    root = Path(__file__).parents[5]
    marker = uuid.uuid4().hex
    argv = [sys.executable, "-c", script, str(tmp_path), level.value, marker]
    server = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=root)  # noqa: ASYNC220  # its end is what is tested
    assert server.stdout is not None
    namespace = await anyio.to_thread.run_sync(server.stdout.readline)
    assert namespace.startswith("net:")
    assert _within(namespace.strip())
    server.kill()
    server.wait()
    server.stdout.close()
    with anyio.fail_after(20):
        for process in _within(namespace.strip()):
            with suppress(ProcessLookupError):
                descriptor = os.pidfd_open(process)
                await anyio.wait_readable(descriptor)
                os.close(descriptor)
    assert not _within(namespace.strip())


def _within(namespace: str) -> set[int]:
    """The processes in a namespace, and those that hold it open."""
    found = set()
    for process in Path("/proc").iterdir():
        try:
            links = [process / "ns" / "net", *(process / "fd").iterdir()]
        except OSError:
            continue
        for link in links:
            try:
                if str(link.readlink()) == namespace:
                    found.add(int(process.name))
            except OSError:  # it has ended
                continue
    return found


async def test_the_number_of_networks_is_bounded_and_those_in_use_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "MOST", 2)
    async with opened(tmp_path, Level.LANDLOCK, ["example.com:443"]) as processes:
        async with serving(processes):
            for number in range(4):
                _, notes = await run(processes, "true", ("somebody", str(number)))
                assert notes == ""
            async with serving(processes, ("somebody", "3")):
                output, notes = await run(processes, ASK.format("127.0.0.1"), ("another", ""))
            assert "the page" not in output
            assert notes == "It ran without network: 2 sessions have programs running."
            assert (await run(processes, ASK.format("127.0.0.1")))[0] == "the page"
        assert len(processes._networks._networks) == 2


@LEVELS
async def test_without_namespaces_a_program_has_no_network_and_its_result_says_so(
    tmp_path: Path, level: Level, ports: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = "It ran without network: There are no namespaces here."
    for allowed, notes in (([], ""), (["example.com:443"], told)):
        async with opened(tmp_path, level, allowed) as processes:
            monkeypatch.setattr(processes._networks, "_problem", "There are no namespaces here.")
            asked = f"exec 3<> /dev/tcp/127.0.0.1/{ports[0]} && echo reached"
            output, said = await run(processes, f"({asked}) 2> /dev/null; echo ran")
            assert (output, said) == ("ran\n", notes)


# Hosts of the list, and no others


CONNECT = (
    'address=${HTTPS_PROXY#http://}; exec 3<> "/dev/tcp/${address%:*}/${address#*:}"; '
    "printf 'CONNECT TARGET HTTP/1.1\\r\\n\\r\\n' >&3; "
    "printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3"
)
URLLIB = "python3 -c 'import urllib.request as u; print(u.urlopen(\"http://{}/\").read())'"


@LEVELS
async def test_allowed_hosts_are_reached_and_no_others(
    tmp_path: Path, level: Level, ports: tuple[int, int]
) -> None:
    here, other = (f"{FOREIGN}:{port}" for port in ports)
    async with opened(tmp_path, level, [here], [here, other]) as processes:
        assert not await processes.is_offline()
        for reaching in (
            f"curl -s http://{here}/",
            f"curl -s --proxytunnel http://{here}/",
            URLLIB.format(here),
        ):
            assert await run(processes, reaching) in {("the page", ""), ("b'the page'\n", "")}
        address = f"127.0.0.1:{ports[0]}"
        for refused in (
            f"curl -sS -m 9 http://{other}/",
            f"curl -sS -m 9 --proxytunnel http://{other}/",
            URLLIB.format(other),
            f"curl -sS -m 9 http://{address}/",
            f"curl -sS -m 9 --noproxy '' http://{address}/",
            f"curl -sS -m 9 --noproxy '*' http://{here}/",
            f"curl -sS -m 9 --noproxy '*' http://{address}/",
            f"exec 3<> /dev/tcp/127.0.0.1/{ports[0]} && echo 'GET /' >&3 && cat <&3",
            CONNECT.replace("TARGET", other),
            "getent ahosts example.com && echo the page",
        ):
            assert "the page" not in (await run(processes, refused))[0], refused
        assert "the page" not in (await run(processes, f"curl -s http://{here}/", ()))[0]


@LEVELS
async def test_a_refused_host_is_told_with_what_would_allow_it(
    tmp_path: Path, level: Level
) -> None:
    async with opened(tmp_path, level, ["private.example:80"]) as processes:
        asked = "curl -s https://{}/; curl -s https://{}/"
        _, notes = await run(processes, asked.format("Example.com", "pypi.org"))
        text = (
            "It tried to reach {0}:443, which system.network does not list; to allow it, the user "
            "adds '{0}:443' to system.network."
        )
        assert notes.splitlines() == [
            text.format("example.com"),
            text.format("pypi.org") + " 'packages' stands for all registries.",
        ]
        many = "for i in 1 2 3 4 5 6 7 8; do curl -s http://$i.example/ http://1.example/; done"
        notes = (await run(processes, many))[1]
        assert notes.count("It tried to reach") == 6
        assert notes.endswith("more hosts that system.network does not list.")


async def test_a_refusal_is_told_to_the_program_that_was_refused(tmp_path: Path) -> None:
    async with opened(tmp_path, Level.LANDLOCK) as processes, serving(processes) as idle:
        _, notes = await run(processes, "curl -s http://example.com/")
        assert "example.com:80" in notes
        assert (await run(processes, "true"))[1] == ""
        await idle.kill()
        assert idle.notes == ()


@LEVELS
async def test_a_program_cannot_take_the_proxys_place(tmp_path: Path, level: Level) -> None:
    script = (
        "import os, socket\n"
        "address, _, port = os.environ['HTTPS_PROXY'][7:].partition(':')\n"
        "for host in (address, '127.0.0.1', '0.0.0.0'):\n"
        "    for options in ((), (socket.SO_REUSEADDR,), (socket.SO_REUSEPORT,)):\n"
        "        with socket.socket() as s:\n"
        "            for option in options: s.setsockopt(socket.SOL_SOCKET, option, 1)\n"
        "            try:\n"
        "                s.bind((host, int(port))); s.listen(); print('taken', host, options)\n"
        "            except OSError: pass\n"
    )
    async with opened(tmp_path, level) as processes:
        assert (await run(processes, f'python3 -c "{script}"'))[0] == ""


@LEVELS
async def test_what_is_allowed_of_loopback_is_at_the_same_port_of_the_sessions(
    tmp_path: Path, level: Level, ports: tuple[int, int]
) -> None:
    here, other = (f"localhost:{port}" for port in ports)
    both = [here, f"127.0.0.1:{ports[0]}"]
    async with opened(tmp_path, level, both, both) as processes:
        for way in (f"curl -sS http://{here}/", f"curl -sS --noproxy '*' http://{here}/"):
            assert await run(processes, way) == ("the page", "")
        assert "the page" not in (await run(processes, f"curl -sS http://{other}/"))[0]
        async with serving(processes):
            assert (await run(processes, ASK.format("127.0.0.1")))[0] == "the page"


@LEVELS
async def test_an_allowed_host_with_a_private_address_needs_its_own_setting(
    tmp_path: Path, level: Level, ports: tuple[int, int]
) -> None:
    here = f"localhost:{ports[0]}"
    async with opened(tmp_path, level, [here]) as processes:
        output, notes = await run(processes, f"curl -sS http://{here}/")
    assert "the page" not in output
    assert "not a public address" in output
    assert f"the user adds '{here}' to requests.private" in notes


@LEVELS
async def test_the_exit_code_and_the_input_are_the_programs_own(
    tmp_path: Path, level: Level
) -> None:
    async with opened(tmp_path, level) as processes:
        for argv, code in (
            (("bash", "-c", "exit 3"), 3),
            (("bash", "-c", "kill -9 $$"), 137),
            (("cat",), 0),
        ):
            program = await processes.start(Command(argv=argv, stdin=b"given", session=OURS))
            assert await program.wait() == code
            assert os.read(program.stdout, 10) == (b"given" if argv == ("cat",) else b"")
            await program.aclose()
