import json
import stat
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from server.settings.sources import load
from tests.server.cli.conftest import Command

DESKTOP = (
    "Library/Application Support/Claude/claude_desktop_config.json"
    if sys.platform == "darwin"
    else ".config/Claude/claude_desktop_config.json"
)
EDITOR = "Library/Application Support" if sys.platform == "darwin" else ".config"
SERVER = Path(__file__).parents[2] / "upstream" / "changing_server.py"
EVERYTHING = {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-everything"]}


@pytest.fixture
def home(work: Path) -> Path:
    return work.parent / "home"


def put(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text, encoding="utf-8")
    return path


def servers(settings: Path) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads(settings.read_text(encoding="utf-8")).get("servers", {})
    return found


def test_the_servers_of_a_client_become_tables_of_the_settings(
    cli: Command, home: Path, settings: Path
) -> None:
    file = put(home / DESKTOP, {"mcpServers": {"everything": {**EVERYTHING, "env": {"A": "1"}}}})
    ended = cli("import", "servers", "--from", "claude-desktop")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines()[:2] == [
        f"Imported 1 server from {file} into {settings}:",
        "  everything: npx -y @modelcontextprotocol/server-everything",
    ]
    assert "toolcrib servers" in ended.out
    assert "remove them from Claude Desktop" in ended.out
    assert servers(settings) == {"everything": {**EVERYTHING, "env": {"A": "1"}}}
    assert load().servers["everything"].env["A"].get_secret_value() == "1"


def test_the_usual_settings_file_is_made_and_only_its_owner_reads_it(
    cli: Command, home: Path
) -> None:
    put(home / ".cursor/mcp.json", {"mcpServers": {"everything": EVERYTHING}})
    ended = cli("import", "servers", "--from", "cursor", "--json")
    settings = Path(json.loads(ended.out)["settings"])
    assert settings.is_relative_to(home)
    assert stat.S_IMODE(settings.stat().st_mode) == 0o600
    assert servers(settings) == {"everything": EVERYTHING}


def test_what_is_in_the_settings_stays_byte_for_byte(
    cli: Command, home: Path, settings: Path
) -> None:
    written = '# mine\r\n[http]\r\nport=9000 # not 8765\r\n\r\n[servers."own"]\r\nurl = "http://h/"'
    settings.write_bytes(written.encode())
    put(home / ".cursor/mcp.json", {"mcpServers": {"everything": EVERYTHING}})
    assert cli("import", "servers", "--from", "cursor").code == 0
    data = settings.read_bytes()
    assert data.startswith(written.encode())
    assert b"\n" not in data.replace(b"\r\n", b"")
    assert list(servers(settings)) == ["own", "everything"]


def test_a_dry_run_says_the_same_and_writes_nothing(
    cli: Command, home: Path, settings: Path
) -> None:
    put(home / ".cursor/mcp.json", {"mcpServers": {"everything": EVERYTHING}})
    ended = cli("import", "servers", "--from", "cursor", "--dry-run")
    assert ended.out.startswith("Would import 1 server from")
    assert settings.read_text() == ""


def test_only_those_that_are_named_are_taken(cli: Command, home: Path, settings: Path) -> None:
    put(home / ".cursor/mcp.json", {"mcpServers": dict.fromkeys(("a", "b", "c"), EVERYTHING)})
    command = ("import", "servers", "--from", "cursor")
    assert cli(*command, "--only", "a", "--only", "c").code == 0
    assert list(servers(settings)) == ["a", "c"]
    ended = cli(*command, "--only", "d")
    assert ended.code == 2
    assert "Available: a, b, c" in " ".join(ended.err.replace("│", "").split())


def test_toolcrib_itself_is_never_taken(cli: Command, home: Path, settings: Path) -> None:
    settings.write_text("[http]\nport = 9000\n")
    entries = {
        "crib": {"command": "/home/you/.venv/bin/toolcrib", "args": ["serve"]},
        "uvx": {"command": "uvx", "args": ["toolcrib", "serve"]},
        "url": {"type": "http", "url": "http://localhost:9000/mcp"},
        "everything": EVERYTHING,
    }
    put(home / ".cursor/mcp.json", {"mcpServers": entries})
    ended = cli("import", "servers", "--from", "cursor")
    assert ended.out.count("it is Toolcrib itself") == 3
    assert list(servers(settings)) == ["everything"]


def test_a_server_that_is_there_gives_way_only_when_told(
    cli: Command, home: Path, settings: Path
) -> None:
    settings.write_text(
        '# above\n[servers.a]\ncommand = "old"\ndeny = ["rm_*"]\ntrusted = true\n'
        '[servers.a.env]\nX = "1"\n# below\n[log]\nlevel = "DEBUG"\n'
    )
    before = settings.read_bytes()
    put(home / ".cursor/mcp.json", {"mcpServers": {"a": {"command": "new", "args": ["\t"]}}})
    command = ("import", "servers", "--from", "cursor")
    ended = cli(*command)
    assert ended.code == 1
    assert "'a' is there already; see --replace" in ended.out
    assert settings.read_bytes() == before
    assert cli(*command, "--replace").code == 0
    text = settings.read_text()
    assert servers(settings) == {"a": {"deny": ["rm_*"], "command": "new", "args": ["\t"]}}
    assert text.startswith("# above\n[servers.a]\n# Imported from Cursor: a, ")
    assert text.endswith('# below\n[log]\nlevel = "DEBUG"\n')
    again = settings.read_bytes()
    assert "it is there already" in (ended := cli(*command)).out
    assert (ended.code, settings.read_bytes()) == (0, again)
    assert cli(*command, "--replace").code == 0
    assert settings.read_bytes() == again


def test_the_project_s_own_file_wins_and_its_servers_start_in_its_folder(
    cli: Command, home: Path, work: Path, settings: Path
) -> None:
    put(home / ".cursor/mcp.json", {"mcpServers": {"a": {"command": "u"}, "b": {"command": "u"}}})
    put(work / ".cursor/mcp.json", {"mcpServers": {"a": {"command": "p"}}})
    ended = cli("import", "servers", "--from", "cursor")
    assert servers(settings) == {"a": {"command": "p", "cwd": str(work)}, "b": {"command": "u"}}
    assert f"another of that name comes from {work / '.cursor/mcp.json'}" in ended.out


def test_in_the_home_directory_the_user_s_file_is_no_project_s(
    cli: Command, home: Path, settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(home / ".cursor/mcp.json", {"mcpServers": {"a": {"command": "u"}}})
    monkeypatch.chdir(home)
    assert cli("import", "servers", "--from", "cursor").code == 0
    assert servers(settings) == {"a": {"command": "u"}}


def test_claude_code_keeps_servers_for_all_projects_and_for_each(
    cli: Command, home: Path, work: Path, settings: Path
) -> None:
    content = {
        "numStartups": 3,
        "mcpServers": {"user": {"type": "stdio", "command": "u"}},
        "projects": {
            str(work): {
                "mcpServers": {"local": {"command": "l"}},
                "disabledMcpServers": ["user"],
                "disabledMcpjsonServers": ["shared"],
            },
            "/elsewhere": {"mcpServers": {"other": {"command": "o"}}, "allowedTools": []},
        },
    }
    put(home / ".claude.json", content)
    put(work / ".mcp.json", {"mcpServers": {"shared": {"type": "sse", "url": "https://h/${P:-s}"}}})
    assert cli("import", "servers", "--from", "claude-code").code == 0
    assert servers(settings) == {
        "shared": {"url": "https://h/${P:-s}", "transport": "sse", "enabled": False},
        "local": {"command": "l", "cwd": str(work)},
        "user": {"command": "u", "enabled": False},
        "other": {"command": "o", "cwd": "/elsewhere"},
    }


VSCODE = """{
  // what VS Code asks for
  "inputs": [{"type": "promptString", "id": "api-key", "password": true}],
  "servers": {
    "files": {
      "type": "stdio", "command": "npx", // found on PATH
      "args": ["fs", "${workspaceFolder}/data", "http://x//y"],
      "env": {"KEY": "${input:api-key}", "LANG": "${env:LANG}", "GONE": null, "N": 1},
      "envFile": "${workspaceFolder}/.env",
    },
    "remote": {"type": "http", "url": "https://h/mcp", "headers": {"X-Key": "${input:api-key}"}},
    "asks": {"command": "x", "args": ["--key=${input:api-key}", "${command:pick}"]}, /* last */
  },
}"""


def test_vs_code_s_comments_and_placeholders_are_understood(
    cli: Command, work: Path, settings: Path
) -> None:
    put(work / ".vscode/mcp.json", VSCODE)
    ended = cli("import", "servers", "--from", "vscode")
    assert servers(settings) == {
        "files": {
            "command": "npx",
            "args": ["fs", f"{work}/data", "http://x//y"],
            "cwd": str(work),
            "env": {"KEY": "${API_KEY}", "LANG": "${LANG}", "N": "1"},
        },
        "remote": {"url": "https://h/mcp", "headers": {"X-Key": "${API_KEY}"}},
        "asks": {
            "command": "x",
            "args": ["--key=${API_KEY}", "${command:pick}"],
            "cwd": str(work),
            "enabled": False,
        },
    }
    assert "asks (not enabled)" in ended.out
    assert "fill in ${command:pick} in args" in ended.out
    assert f"the variables in {work}/.env are not read" in ended.out
    assert "# To do: VS Code asked for 'api-key': set the variable API_KEY" in settings.read_text()


@pytest.mark.parametrize(
    "fields",
    [
        {"command": "x", "env": {"A": "${keyring:github}"}},
        {"command": "x", "args": ["${file:/home/ann/{key}"]},
        {"url": "${NONE:-https://h/$}{file:/home/ann/key}"},
    ],
)
def test_a_server_that_a_client_s_file_gives_stored_secrets_is_not_enabled(
    fields: dict[str, Any], cli: Command, work: Path, settings: Path
) -> None:
    put(work / ".mcp.json", {"mcpServers": {"greedy": fields}})
    ended = cli("import", "servers", "--from", "claude-code")
    assert servers(settings)["greedy"]["enabled"] is False
    assert "greedy (not enabled)" in ended.out


def test_vs_code_s_user_file_and_older_settings_are_found(
    cli: Command, home: Path, settings: Path
) -> None:
    user = home / EDITOR / "Code" / "User"
    put(user / "mcp.json", {"servers": {"a": {"command": "a"}}})
    put(user / "profiles" / "x1" / "mcp.json", {"servers": {"b": {"command": "b"}}})
    put(user / "settings.json", '{"mcp": {"servers": {"c": {"command": "c"}}}, "x": 1,}')
    assert cli("import", "servers", "--from", "vscode").code == 0
    assert sorted(servers(settings)) == ["a", "b", "c"]


CODEX = """
model = "o"

[mcp_servers.docs]
command = "npx"
args = ["-y", "docs"]
env_vars = ["DOCS_KEY", { name = "OTHER", source = "local" }]
startup_timeout_sec = 20
tool_timeout_sec = 90.5
enabled = false
enabled_tools = ["search"]
disabled_tools = ["delete"]

[mcp_servers.docs.env]
A = "b"

[mcp_servers.remote]
url = "https://h/mcp"
bearer_token_env_var = "TOKEN"
http_headers = { X = "1" }
env_http_headers = { Y = "NAME" }
scopes = ["read"]
"""


def test_codex_s_tables_are_understood(cli: Command, home: Path, settings: Path) -> None:
    put(home / ".codex/config.toml", CODEX)
    ended = cli("import", "servers", "--from", "codex")
    assert servers(settings) == {
        "docs": {
            "command": "npx",
            "args": ["-y", "docs"],
            "env": {"A": "b", "DOCS_KEY": "${DOCS_KEY}", "OTHER": "${OTHER}"},
            "start_timeout": 20,
            "timeout": 90.5,
            "enabled": False,
            "allow": ["search"],
            "deny": ["delete"],
        },
        "remote": {
            "url": "https://h/mcp",
            "token": "${TOKEN}",
            "headers": {"X": "1", "Y": "${NAME}"},
        },
    }
    assert "Codex signs in (scopes)" in ended.out


def test_gemini_s_settings_are_understood(cli: Command, home: Path, settings: Path) -> None:
    content = {
        "mcp": {"excluded": ["off"], "allowed": ["a", "b", "off"]},
        "mcpServers": {
            "a": {"httpUrl": "https://h/mcp", "headers": {"K": "$KEY"}, "timeout": 5000},
            "b": {"command": "b", "cwd": "sub", "env": {"K": "${KEY:-none}"}, "trust": True},
            "off": {"command": "o", "includeTools": ["x"], "excludeTools": ["y"]},
            "unlisted": {"url": "https://h/sse"},
        },
    }
    put(home / ".gemini/settings.json", content)
    ended = cli("import", "servers", "--from", "gemini")
    assert servers(settings) == {
        "a": {"url": "https://h/mcp", "headers": {"K": "${KEY}"}, "timeout": 5},
        "b": {"command": "b", "cwd": str(home / ".gemini/sub"), "env": {"K": "${KEY:-none}"}},
        "off": {"command": "o", "allow": ["x"], "deny": ["y"], "enabled": False},
        "unlisted": {"url": "https://h/sse", "enabled": False},
    }
    assert "trust: here, [policy] decides what runs without asking" in ended.out


def test_windsurf_s_file_is_understood(cli: Command, home: Path, settings: Path) -> None:
    content = {
        "mcpServers": {
            "a": {"serverUrl": "https://h/mcp", "headers": {"K": "${env:KEY}"}, "disabled": True},
            "b": {"command": "b", "env": {"F": "${file:/etc/key}"}, "disabledTools": ["x"]},
        }
    }
    put(home / ".codeium/windsurf/mcp_config.json", content)
    ended = cli("import", "servers", "--from", "windsurf")
    assert servers(settings) == {
        "a": {"url": "https://h/mcp", "headers": {"K": "${KEY}"}, "enabled": False},
        "b": {"command": "b", "env": {"F": "${file:/etc/key}"}, "deny": ["x"], "enabled": False},
    }
    assert "fill in ${file:/etc/key} in env.F" in ended.out


def test_zed_s_settings_are_understood(cli: Command, home: Path, settings: Path) -> None:
    content = """// settings of Zed
    {
      "theme": "One", // trailing commas everywhere,
      "context_servers": {
        "new": {"source": "custom", "command": "n", "args": ["-v"], "env": {}, "timeout": 7},
        "old": {"command": {"path": "o", "args": ["-x"], "env": {"A": "b"}}, "settings": {}},
        "extension": {"source": "extension", "settings": {"token": "x"}},
      },
    }"""
    put(home / ".config/zed/settings.json", content)
    ended = cli("import", "servers", "--from", "zed")
    assert servers(settings) == {
        "new": {"command": "n", "args": ["-v"], "timeout": 7},
        "old": {"command": "o", "args": ["-x"], "env": {"A": "b"}},
    }
    assert "extension: a Zed extension starts it" in ended.out


def test_a_file_of_any_client_can_be_named(cli: Command, work: Path, settings: Path) -> None:
    put(work / "mine.json", {"mcpServers": {"a": {"command": "a", "timeout": 60}}})
    ended = cli("import", "servers", "--from", "mine.json")
    assert servers(settings) == {"a": {"command": "a"}}
    assert "not taken over: timeout" in ended.out
    put(work / "theirs.json", {"context_servers": {"b": {"command": "b", "timeout": 60}}})
    assert cli("import", "servers", "--from", "theirs.json").code == 0
    assert servers(settings)["b"] == {"command": "b", "timeout": 60}


def test_what_cannot_be_taken_over_is_told_and_the_rest_is(
    cli: Command, work: Path, settings: Path
) -> None:
    entries = {
        "socket": {"type": "ws", "url": "wss://h"},
        "empty": {},
        "list": ["npx"],
        "args": {"command": "x", "args": "-y z"},
        "url": {"url": "not one"},
        "late": {"url": "${BASE}/mcp"},
        "half": {"command": "x", "args": ["\ud800"]},
        "nested": {"command": "x", "env": {"A": {}}},
        "fine": {"url": "${BASE:-https://h}/mcp"},
    }
    put(work / "mine.json", {"mcpServers": entries})
    ended = cli("import", "servers", "--from", "mine.json", "--json")
    told = json.loads(ended.out)
    reasons = {each["from"]: each["reason"] for each in told["left_out"]}
    assert ended.code == 0
    assert servers(settings) == {"fine": {"url": "https://h/mcp"}}
    assert reasons["socket"] == "it uses 'ws'; supported are stdio, Streamable HTTP and sse"
    assert reasons["empty"] == "it has neither a command nor a url"
    assert reasons["list"] == "it is not a table with a command or a url"
    assert reasons["args"] == "its args are not a list"
    assert reasons["url"] == "its url 'not one' is not an http or https address"
    assert reasons["late"] == "its url '${BASE}/mcp' is not an http or https address"
    assert reasons["half"] == "it contains an unpaired surrogate"
    assert reasons["nested"] == "its A holds something that is not text"


def test_names_are_made_to_fit_and_told(cli: Command, work: Path, settings: Path) -> None:
    names = ("GitHub", "github", "My  Server!", "天気", "x" * 40, "a__b", "Café")
    entries = {name: {"command": f"c{at}"} for at, name in enumerate(names)}
    put(work / "mine.json", {"mcpServers": entries})
    ended = cli("import", "servers", "--from", "mine.json")
    fitting = ["github", "github-2", "my-server", "server", "x" * 30, "a-b", "cafe"]
    assert list(servers(settings)) == fitting
    assert list(load().servers) == fitting
    assert "was called 'My  Server!'" in ended.out


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"mcpServers": {', "is not JSON: Expecting"),
        ('{"mcpServers": {"a": {"command": "x"}} /* open', "is not JSON"),
        ("[]", "does not hold a JSON object"),
        ("[" * 100_000, "nested too deeply"),
        (b"\xff\xfe{\x00}", "is not UTF-8 text (byte 0)"),
    ],
)
def test_a_damaged_file_is_told_and_nothing_is_written(
    content: str | bytes, said: str, cli: Command, work: Path, settings: Path
) -> None:
    data = content if isinstance(content, bytes) else content.encode()
    (work / "mine.json").write_bytes(data)
    ended = cli("import", "servers", "--from", "mine.json")
    assert ended.code == 1
    assert said in ended.err
    assert settings.read_text() == ""


def test_an_error_is_where_it_is_in_spite_of_comments(cli: Command, work: Path) -> None:
    put(work / "mine.json", '{ // one\n /* two\n */ "mcpServers": oops }')
    ended = cli("import", "servers", "--from", "mine.json")
    assert "at line 3, column 19" in ended.err


def test_a_file_without_servers_is_told(cli: Command, work: Path, settings: Path) -> None:
    put(work / "mine.json", {"mcpServers": {}, "theme": "dark"})
    ended = cli("import", "servers", "--from", "mine.json")
    assert (ended.code, ended.out) == (1, f"No servers in {work / 'mine.json'}.\n")


def test_a_client_that_is_not_here_is_told_with_the_places(
    cli: Command, home: Path, work: Path
) -> None:
    ended = cli("import", "servers", "--from", "cursor")
    assert ended.code == 1
    assert str(home / ".cursor/mcp.json") in ended.err
    assert str(work / ".cursor/mcp.json") in ended.err


def test_settings_in_another_form_are_left_alone(cli: Command, home: Path, settings: Path) -> None:
    written = 'servers = { own = { url = "http://h/" } }\n'
    settings.write_text(written)
    put(home / ".cursor/mcp.json", {"mcpServers": {"everything": EVERYTHING}})
    ended = cli("import", "servers", "--from", "cursor")
    assert ended.code == 1
    assert "Write it so; nothing was changed." in ended.err
    assert settings.read_text() == written
    assert list(settings.parent.iterdir()) == [settings]


def test_a_link_to_the_settings_stays_one(cli: Command, home: Path, settings: Path) -> None:
    kept = home / "dotfiles.toml"
    home.mkdir(exist_ok=True)
    settings.rename(kept)
    settings.symlink_to(kept)
    put(home / ".cursor/mcp.json", {"mcpServers": {"everything": EVERYTHING}})
    assert cli("import", "servers", "--from", "cursor").code == 0
    assert settings.is_symlink()
    assert list(servers(kept)) == ["everything"]


def test_servers_of_the_environment_are_said_to_hide_those_of_the_file(
    cli: Command, home: Path, settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLCRIB_SERVERS", '{"a": {"command": "x"}}')
    put(home / ".cursor/mcp.json", {"mcpServers": {"everything": EVERYTHING}})
    ended = cli("import", "servers", "--from", "cursor")
    assert "environment variable TOOLCRIB_SERVERS" in ended.out


def test_names_from_outside_do_not_steer_the_terminal_or_the_settings(
    cli: Command, work: Path, settings: Path
) -> None:
    name = "a\x1b[31m\n[servers.evil]\ncommand = 'x'\n#"
    put(work / "mine.json", {"mcpServers": {name: EVERYTHING}})
    ended = cli("import", "servers", "--from", "mine.json")
    assert "\x1b" not in ended.out
    assert list(servers(settings)) == ["a-31m-servers-evil-command-x"]


def test_secrets_are_written_and_not_shown(cli: Command, work: Path, settings: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    entry = {"command": "x", "args": [f"--token={secret}"], "env": {"KEY": secret}}
    put(work / "mine.json", {"mcpServers": {"a": entry}})
    ended = cli("import", "servers", "--from", "mine.json")
    assert secret not in ended.out
    assert servers(settings) == {"a": entry}


def test_the_options_of_servers_go_with_servers(cli: Command, work: Path) -> None:
    assert cli("import", "notes", "--dry-run").code == 2
    assert cli("import", "notes", "--from", "cursor").code == 2
    ended = cli("import", "servers")
    assert ended.code == 2
    assert "--from" in ended.err
    (work / "servers").mkdir()
    (work / "servers" / "a.md").write_text("# A\n\nText.\n")
    assert cli("import", "servers").out == "1 added\n"


@pytest.mark.parametrize(("command", "code"), [(["servers"], 0), (["import", "servers"], 2)])
def test_without_a_client_it_says_which_ones_are_here_and_what_imports_their_servers(
    cli: Command, home: Path, settings: Path, command: list[str], code: int
) -> None:
    cursor = put(home / ".cursor/mcp.json", {"mcpServers": {"everything": EVERYTHING}})
    broken = put(home / ".gemini/settings.json", "{")
    ended = cli(*command)
    assert ended.code == code
    lines = (ended.out + ended.err).splitlines()
    assert f"  Cursor: 1 server in {cursor}" in lines
    assert any(line.startswith(f"  Gemini CLI: {broken} is not JSON") for line in lines)
    assert "      toolcrib import servers --from cursor" in lines
    assert not any("Windsurf" in line for line in lines)
    assert (f"{settings}:" in lines) == (command == ["servers"])


@pytest.mark.parametrize("command", [["servers"], ["import", "servers"]])
def test_where_no_client_is_found_it_says_so_and_how_to_name_a_file(
    cli: Command, settings: Path, command: list[str]
) -> None:
    ended = cli(*command)
    told = ended.out + ended.err
    assert "No configuration of a client was found" in told
    assert "toolcrib import servers --from FILE" in told


def test_a_refused_call_of_an_imported_server_s_tool_says_what_lets_it_through(
    cli: Command, home: Path, settings: Path, work: Path
) -> None:
    listed = put(work / "tools.json", [{"name": "add", "inputSchema": {"type": "object"}}])
    toy = {"command": sys.executable, "args": [str(SERVER), str(listed)]}
    put(home / ".cursor/mcp.json", {"mcpServers": {"toy": toy}})
    cli("import", "servers", "--from", "cursor")
    refused = cli("call", "toy__add").err
    assert refused.startswith("approval_required")
    assert f'by writing into {settings}: `allow = ["toy__add"]` below [policy]' in refused
    assert "`trusted = true` below [servers.toy]" in refused
    imported = settings.read_text()
    settings.write_text(f'{imported}\n[policy]\nallow = ["toy__add"]\n')
    assert cli("call", "toy__add").code == 0
    settings.write_text(f'{imported}\n[policy]\nask = ["toy__add"]\n')
    assert "[policy]" not in cli("call", "toy__add").err
