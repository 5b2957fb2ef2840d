"""Nothing leaves the machine: what our processes look up, connect to, and write in a home."""

import ipaddress
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from benchmarks.ray_cluster import cluster
from server.clients.locations import command_path
from storage.index.embedders.bundled import MODEL_FILE
from storage.library import Library
from storage.outbound import remove_telemetry_files
from tools.data.running.environment import DataEnvironment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="strace is a program of Linux")

ROOT = Path(__file__).parents[2]
OURS = (Path(".local/share/toolcrib"), Path(".config/toolcrib"))
CALLS = "connect,sendto,sendmsg,sendmmsg"
DNS = "53"

_ADDRESS = re.compile(
    r'sin6?_port=htons\((\d+)\).*?(?:inet_addr\("|inet_pton\(AF_INET6, ")([\da-f.:]+)"'
)
_FAMILY = re.compile(r"sa_family=(\w+)")
_LOOKUP = re.compile(r"sendto\(.*hosts\\0|sun_path=\"/run/systemd/resolve|io\.systemd\.Resolve")
"""Names that are asked of a local service: nscd, or systemd-resolved."""

NAMES = """
# /// script
# dependencies = ["six"]
# ///
import os
import six

def version_of_six() -> str:
    return six.__version__ + os.environ["ORT_DISABLE_TELEMETRY"]
"""

LIBRARIES = """
from storage.models import SearchFilter
from tools.authoring import RequestContext, tool

@tool(scope="context", effects={"read"})
def titles(query: str, context: RequestContext) -> list[str]:
    found = context.shelf().search(query, SearchFilter(), 5)
    return [hit.context.title for hit in found.hits]

@tool
def libraries(text: str) -> str:
    import chromadb
    import ddgs
    import onnxruntime
    import trafilatura
    held = chromadb.EphemeralClient().create_collection("held", embedding_function=None)
    held.add(ids=["a"], embeddings=[[1.0, 2.0]])
    onnxruntime.InferenceSession(MODEL, providers=["CPUExecutionProvider"])
    ddgs.DDGS()
    page = f"<html><body><p>{text}</p></body></html>"
    return trafilatura.extract(page, url="https://example.co.uk/a") or ""
"""

CLIENT = """
import os, sys
import anyio
from mcp import Client, StdioServerParameters

async def main(command, site):
    server = StdioServerParameters(command=command, args=["serve"], env=dict(os.environ))
    async with Client(server) as client:
        for name, arguments in {
            "add_document": {"text": "The kettle is in the blue cupboard.", "title": "Kettle"},
            "query": {"query": "Where is the kettle?"},
            "search_tools": {"query": "read a file"},
            "read_web_page": {"url": site + "/page"},
            "web_search": {"query": "heron"},
            "bash": {"command": "true"},
            "run_code": {"code": "print(await tools.query(query='kettle'))"},
        }.items():
            result = await client.call_tool("call_tool", {"name": name, "arguments": arguments})
            assert not result.is_error, (name, result.content)

anyio.run(main, *sys.argv[1:])
"""

RECIPE = """\
# Clean it
# approval_required: false
dataset_path: raw.jsonl
export_path: {name}.jsonl
text_keys: [text]
{more}
process:
- whitespace_normalization_mapper:
- text_length_filter: {{min_len: 4}}
"""


class Watched:
    """Runs commands in a home of their own; a run fails if anything leaves it.

    Attributes:
        home: The home.
        data: The data directory, where Toolcrib has it by default.
        root: The root of its tools.
        near: Addresses that count as this machine.
    """

    def __init__(self, place: Path, temporary: str, strace: str) -> None:
        self._strace = strace
        self._place = place
        self._temporary = temporary
        self.home = place / "home"
        self.data = self.home / OURS[0]
        self.near = is_loopback
        self.root = place / "root"
        for each in (self.home, self.root):
            each.mkdir()

    def run(self, *command: str | Path, quiet: bool = True, **variables: str) -> str:
        """Runs a command, and returns what it wrote to stdout.

        Args:
            command: The command.
            quiet: Whether it may reach this machine only.
            variables: What else is in its environment.
        """
        trace = self._place / "trace"
        own = {"HOME": str(self.home), "TMPDIR": self._temporary, "TOOLCRIB_ROOT": str(self.root)}
        options = ("-f", "-qq", "-s", "128", "-e", f"trace={CALLS}", "-o", trace)
        ended = subprocess.run(
            [self._strace, *options, *command],
            cwd=ROOT,
            env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **own, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        calls = calls_out(trace.read_text(errors="replace"), self.near) if quiet else []
        assert [*calls, *self.foreign_files()] == [], command
        return ended.stdout

    def toolcrib(self, *words: str | Path, **options: Any) -> str:
        return self.run(command_path(), *words, **options)

    def foreign_files(self) -> list[str]:
        """What is in the home and not ours."""
        found = (each.relative_to(self.home) for each in self.home.rglob("*"))
        return [str(path) for path in found if not any(map(path.is_relative_to, _with_ours(path)))]


def _with_ours(path: Path) -> list[Path]:
    return [*OURS, *(path for own in OURS if own.is_relative_to(path))]


def is_loopback(address: str) -> bool:
    parsed = ipaddress.ip_address(address)
    return (getattr(parsed, "ipv4_mapped", None) or parsed).is_loopback


def is_own(address: str) -> bool:
    """Whether an address is one of this machine's."""
    address = address.removeprefix("::ffff:")
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True


def calls_out(trace: str, near: Any = is_loopback) -> list[str]:
    """The calls of a trace that ask for a name, or for another machine."""
    found = []
    for line in trace.splitlines():
        families = set(_FAMILY.findall(line)) - {"AF_UNIX", "AF_NETLINK", "AF_UNSPEC"}
        addresses = _ADDRESS.findall(line)
        is_near = all(port != DNS and near(address) for port, address in addresses)
        if _LOOKUP.search(line) or (families and not (addresses and is_near)):
            found.append(line)
    return found


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    strace = shutil.which("strace")
    assert strace, "Install strace: nothing else shows what our processes connect to."
    with TemporaryDirectory() as temporary:  # a short path, as the sockets of programs need
        yield Watched(tmp_path, temporary, strace)


@pytest.fixture
def kettle(tmp_path: Path) -> Path:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "kettle.md").write_text("The kettle is in the blue cupboard.")
    return tmp_path / "notes"


@pytest.mark.parametrize(
    "script",
    [
        "import socket; socket.socket(2, 2).connect(('127.0.0.53', 53))",
        "import socket; socket.socket(2, 2).sendto(b'', ('127.0.0.53', 53))",
        "import socket; socket.socket(2, 2).sendmsg([b''], [], 0, ('127.0.0.1', 53))",
        "import socket; socket.socket(10, 2).connect(('::1', 53))",
        "import os, subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])",
        "import pathlib; (pathlib.Path.home() / '.cache').mkdir()",
        "import pathlib; (pathlib.Path.home() / '.local/share/x').mkdir(parents=True)",
    ],
)
def test_a_lookup_and_a_file_are_seen(watched: Watched, script: str) -> None:
    below = "import socket; socket.socket(2, 2).sendto(b'', ('127.0.0.1', 53))"
    with pytest.raises(AssertionError, match=r"htons\(53\)|\.cache|share/x"):
        watched.run(sys.executable, "-c", script, below)


V4 = 'connect(3, {{sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("{}")}}, 16) = 0'
V6 = (
    "connect(3, {{sa_family=AF_INET6, sin6_port=htons(80), sin6_flowinfo=htonl(0), "
    'inet_pton(AF_INET6, "{}", &sin6_addr), sin6_scope_id=0}}, 28) = 0'
)


@pytest.mark.parametrize(
    ("line", "leaves"),
    [
        (V4.format("127.0.0.1"), False),
        (V4.format("192.0.2.1"), True),
        (V4.format("192.0.2.1").replace("connect(3, {", "sendmsg(3, {msg_name={"), True),
        (V6.format("::1"), False),
        (V6.format("::ffff:127.0.0.1"), False),
        (V6.format("::ffff:192.0.2.1"), True),
        (V6.format("2001:db8::1"), True),
        ("connect(3, {sa_family=AF_VSOCK, svm_cid=0x2", True),
        ('connect(3, {sa_family=AF_UNIX, sun_path="/var/run/nscd/socket"}, 110) = 0', False),
        (r'sendto(3, "\2\0\0\0\r\0\0\0\6\0\0\0hosts\0", 18, MSG_NOSIGNAL, NULL, 0) = 18', True),
        ("connect(3, {sa_family=AF_UNSPEC, sa_data=0}, 16) = 0", False),
    ],
)
def test_calls_beyond_this_machine_are_told_from_others(line: str, leaves: bool) -> None:
    assert bool(calls_out(f"17 {line}")) is leaves


@pytest.mark.slow
def test_commands_reach_nothing_and_keep_to_their_directories(
    watched: Watched, kettle: Path
) -> None:
    watched.toolcrib("demo")
    watched.toolcrib("import", kettle)
    assert "blue" in watched.toolcrib("query", "Where is the kettle?")
    assert "blue" in watched.toolcrib("call", "query", "query=Where is the kettle?")
    assert "read_file" in watched.toolcrib("search", "read a file")
    watched.toolcrib("doctor")
    watched.toolcrib("backup", kettle.parent / "kettle.backup")
    watched.toolcrib("export", kettle.parent / "kettle.jsonl")


@pytest.mark.slow
def test_a_client_of_a_server_reaches_nothing_else(watched: Watched, site: Any) -> None:
    site.serve("/page", "<html><body><h1>Herons</h1><p>They wait.</p></body></html>", "text/html")
    results = [{"url": "https://example.org/", "title": "Heron", "content": "A bird."}]
    found = json.dumps({"results": results})
    site.serve("/search?q=heron&format=json&pageno=1", found, "application/json")
    settings = {
        "TOOLCRIB_REQUESTS__PRIVATE": site.address,
        "TOOLCRIB_POLICY__ALLOW": "read_web_page,web_search",
        "TOOLCRIB_WEB_SEARCH__PROVIDER": "searxng",
        "TOOLCRIB_WEB_SEARCH__URL": f"http://{site.address}",
    }
    client = (sys.executable, "-c", CLIENT, command_path(), f"http://{site.address}")
    watched.run(*client, **settings)
    assert len(site.asked) == 2


@pytest.mark.slow
def test_the_workers_of_function_files_reach_nothing(watched: Watched, kettle: Path) -> None:
    file = kettle.parent / "crafts.py"
    model = ROOT / "storage" / "index" / "embedders" / MODEL_FILE
    file.write_text(f"MODEL = {str(model)!r}\n{LIBRARIES}")
    watched.toolcrib("import", kettle)
    given = {"TOOLCRIB_FUNCTIONS__CONTEXT": str(file), "TOOLCRIB_FUNCTIONS__PATHS": str(file)}
    # The user's own choice for other programs: ours report nothing all the same.
    given |= {"ORT_DISABLE_TELEMETRY": "0", "ANONYMIZED_TELEMETRY": "True"}
    assert "Kettle" in watched.toolcrib("call", "titles", "query=kettle", **given)
    assert "Herons" in watched.toolcrib("call", "libraries", "text=Herons wait.", **given)


@pytest.mark.slow
def test_what_uv_fetches_stays_with_the_data(watched: Watched, tmp_path: Path) -> None:
    file = tmp_path / "names.py"
    file.write_text(NAMES)
    call = ("call", "version_of_six", "--functions", file)
    index = {name: value for name, value in os.environ.items() if name.endswith("_INDEX")}
    assert watched.toolcrib(*call, quiet=False, **index).startswith("1.")
    assert (watched.data / "uv" / "cache").is_dir()
    shutil.rmtree(watched.data / "environments")
    assert watched.toolcrib(*call, UV_OFFLINE="1").rstrip().endswith("1")


@pytest.mark.slow
@pytest.mark.parametrize(
    "tests",
    [
        "storage/index/embedders/test_making_fastembed.py",
        "storage/index/embedders/test_e5.py",
        "tools/sandbox/web/test_web_search_engines.py::test_results_are_found",
    ],
)
def test_libraries_reach_nothing_in_their_own_tests(watched: Watched, tests: str) -> None:
    place = f"--basetemp={watched.home.parent}/t"
    options = ("-q", "-n", "0", "-m", "", "-p", "no:cacheprovider", place)
    watched.run(sys.executable, "-m", "pytest", *options, f"tests/{tests}")


@pytest.fixture
def data(watched: Watched, data_juicer: DataEnvironment) -> Watched:
    """A home with Data-Juicer and a data set in its root."""
    watched.data.mkdir(parents=True)
    (watched.data / "data-juicer").symlink_to(data_juicer.path)
    rows = [{"text": "The bowline holds."}, {"text": "no"}]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (watched.root / "raw.jsonl").write_text(lines)
    return watched


def apply(data: Watched, name: str, more: str = "") -> str:
    plan = data.root / f"{name}.yaml"
    plan.write_text(RECIPE.format(name=name, more=more))
    given = ("apply_recipe", f"plan_path={plan.name}", "confirm=true")
    return data.toolcrib("call", *given, TOOLCRIB_POLICY__ALLOW="apply_recipe")


@pytest.mark.data
def test_recipes_reach_nothing(data: Watched) -> None:
    data.toolcrib("call", "inspect_dataset", "path=raw.jsonl")
    assert "1 out" in apply(data, "direct")
    assert "1 out" in apply(data, "program", "open_tracer: false")  # only `dj-process` heeds it


@pytest.fixture
def address(data_juicer: DataEnvironment) -> Iterator[str]:
    with ExitStack() as ends:
        yield ends.enter_context(cluster(data_juicer.path, nodes=1))


@pytest.mark.ray
def test_a_recipe_on_a_cluster_reaches_this_machine_only(data: Watched, address: str) -> None:
    data.near = is_own  # Ray's nodes call each other by them
    more = f"executor_type: ray\nray_address: {address}"
    assert "1 out" in apply(data, "spread", more)


@pytest.fixture
def leftovers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What onnxruntime had kept, in a cache that the environment names."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "cache" / "Microsoft" / "DeveloperTools" / ".onnxruntime"
    folder.mkdir(parents=True)
    for name in ("deviceid", "onnxruntime.db", "onnxruntime.db-wal", "onnxruntime.db-shm"):
        (folder / name).touch()
    return folder


def test_what_earlier_versions_let_onnxruntime_keep_is_removed_once(
    library: Library, leftovers: Path, tmp_path: Path
) -> None:
    remove_telemetry_files(library.database)
    assert list((tmp_path / "cache").iterdir()) == []
    leftovers.mkdir(parents=True)
    (leftovers / "deviceid").touch()  # another program's
    remove_telemetry_files(library.database)
    assert (leftovers / "deviceid").exists()


def test_other_files_there_are_left(library: Library, leftovers: Path) -> None:
    (leftovers / "other").touch()
    (leftovers.parent / "deviceid").touch()  # that of other tools of Microsoft
    remove_telemetry_files(library.database)
    assert [each.name for each in leftovers.iterdir()] == ["other"]
    assert (leftovers.parent / "deviceid").exists()


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_links_there_are_not_followed(
    library: Library, leftovers: Path, tmp_path: Path, depth: int
) -> None:
    path = [leftovers, *leftovers.parents][depth]
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    remove_telemetry_files(library.database)
    assert (leftovers / "deviceid").exists()


def test_a_link_to_the_whole_cache_is_the_users(
    library: Library, leftovers: Path, tmp_path: Path
) -> None:
    (tmp_path / "cache").rename(tmp_path / "disk")
    (tmp_path / "cache").symlink_to(tmp_path / "disk")
    remove_telemetry_files(library.database)
    assert not leftovers.exists()


@pytest.mark.slow
def test_a_command_removes_what_onnxruntime_itself_had_made(
    watched: Watched, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    as_before = {"XDG_CACHE_HOME": str(cache), "PATH": os.environ["PATH"]}
    subprocess.run([sys.executable, "-c", "import onnxruntime"], env=as_before, check=True)
    assert {each.name for each in cache.rglob("*") if each.is_file()} >= {
        "deviceid",
        "onnxruntime.db",
    }
    watched.toolcrib("query", "kettle", XDG_CACHE_HOME=str(cache))
    assert list(cache.iterdir()) == []
