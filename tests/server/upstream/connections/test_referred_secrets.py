"""Other servers get the values that their settings refer to, and no result shows them."""

import sys
from pathlib import Path

import pytest
from mcp import Client

from server.settings.gateway import ServerSettings
from server.settings.safety import PolicySettings
from tests.server.serving import running
from tools.sandbox.secrets.store import FOLDER, SecretStore

FRAIL = Path(__file__).with_name("frail_upstream.py")


@pytest.mark.slow
async def test_a_server_gets_its_own_secret_alone_and_its_answers_do_not_show_it(
    tmp_path: Path,
) -> None:
    SecretStore(tmp_path / "data" / FOLDER).put("tickets", "kept-value-1", in_file=True)
    private = tmp_path / "token.txt"
    private.write_text("file-value-1\n")
    private.chmod(0o600)
    env = {"KEPT": "a ${keyring:tickets} b", "FILE": f"${{file:{private}}}"}

    def server(name: str, **more: dict[str, str]) -> ServerSettings:
        (tmp_path / name).mkdir()
        (tmp_path / name / "switches.json").write_text('{"tools": ["variable"]}')
        args = (str(FRAIL), str(tmp_path / name))
        return ServerSettings.model_validate({"command": sys.executable, "args": args, **more})

    async with (
        running(
            tmp_path,
            policy=PolicySettings(allow=("*",)),
            servers={"named": server("named", env=env), "other": server("other")},
        ) as app,
        Client(app.server) as client,
    ):

        async def told(tool: str, name: str) -> str:
            result = await client.call_tool(tool, {"text": name})
            return result.content[0].text  # type: ignore[union-attr]

        assert "a [secret:keyring:tickets] b" in await told("named__variable", "KEPT")
        assert f"[secret:file:{private}]" in await told("named__variable", "FILE")
        assert "kept" not in await told("other__variable", "KEPT")
        (tmp_path / "root" / "link").symlink_to(private)
        for path in (str(private), "link"):
            shown = await client.call_tool("read_file", {"file_path": path})
            assert shown.is_error
            assert "file-value" not in str(shown)
