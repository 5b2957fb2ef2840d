import json
import tomllib
from pathlib import Path

import pytest

from tests.server.cli.conftest import Command

SHOP = {
    "openapi": "3.0.0",
    "info": {"title": "The Shop API v2"},
    "servers": [{"url": "https://shop.example/v2"}],
    "components": {"securitySchemes": {"k": {"type": "apiKey", "in": "header", "name": "X-Key"}}},
    "paths": {
        "/items": {
            "get": {"operationId": "listItems", "summary": "Lists \x1b[31mitems"},
            "post": {"operationId": "addItem", "summary": "Adds one"},
        }
    },
}


@pytest.fixture
def settings(settings: Path) -> Path:
    """A settings file that says something already."""
    settings.write_text('[log]\nlevel = "INFO"\n')
    return settings


@pytest.fixture
def described(work: Path) -> Path:
    path = work / "shop.json"
    path.write_text(json.dumps(SHOP))
    return path


def test_an_api_becomes_a_table_of_the_settings(
    cli: Command, settings: Path, described: Path
) -> None:
    ended = cli("import", "openapi", "shop.json", "--only", "GET")
    assert (ended.code, ended.err) == (0, "")
    written = tomllib.loads(settings.read_text())
    assert written["openapi"] == {"shop": {"description": str(described), "include": ["GET"]}}
    assert written["log"] == {"level": "INFO"}
    listed = cli("tools", "shop__listItems")
    assert json.loads(listed.out)["source"] == "openapi:shop"


def test_it_tells_what_becomes_a_tool_and_what_to_write(
    cli: Command, settings: Path, described: Path
) -> None:
    before = settings.read_text()
    ended = cli("import", "openapi", str(described), "--dry-run")
    assert ended.out.splitlines() == [
        "The Shop API v2: 2 operations.",
        "2 of them would become tools: 1 that read, 1 that change something.",
        "  shop__listItems: Lists ␛[31mitems",
        "  shop__addItem: Adds one",
        "Requests go to https://shop.example/v2.",
        "",
        f"Would be written into {settings}:",
        "  [openapi.shop]",
        f'  description = "{described}"',
        "",
        "Next:",
        "  If it needs an API key, write (docs/secrets.md):",
        "    [secrets.shop]",
        '    env = "SHOP_KEY"',
        '    hosts = ["shop.example"]',
        '    header = "X-Key"',
        '  and secret = "shop" below [openapi.shop].',
        "  Each call asks, unless a rule below [policy] allows it; this one allows reading:",
        '    allow = ["source:openapi:shop+only:read,external"]',
        "  `toolcrib tools` lists the tools; agents find them with search_tools.",
    ]
    assert settings.read_text() == before


def test_a_secret_for_its_host_is_used(cli: Command, settings: Path, described: Path) -> None:
    settings.write_text('[secrets.key]\nenv = "K"\nhosts = ["shop.example"]\nheader = "X-Key"\n')
    ended = cli("import", "openapi", str(described))
    assert ("secret", "key") in tomllib.loads(settings.read_text())["openapi"]["shop"].items()
    assert "[secrets." not in ended.out


def test_a_name_that_is_taken_is_refused(cli: Command, settings: Path, described: Path) -> None:
    assert cli("import", "openapi", str(described)).code == 0
    ended = cli("import", "openapi", str(described), "--only", "GET")
    assert (ended.code, "--replace replaces it" in ended.err) == (1, True)
    assert cli("import", "openapi", str(described), "--name", "other").code == 0
    assert cli("import", "openapi", str(described), "--only", "GET", "--replace").code == 0
    written = tomllib.loads(settings.read_text())["openapi"]
    assert (list(written), written["shop"]["include"]) == (["shop", "other"], ["GET"])


def test_a_description_without_a_host_says_what_to_write(
    cli: Command, settings: Path, described: Path
) -> None:
    described.write_text(json.dumps({**SHOP, "servers": [{"url": "/v2"}]}))
    ended = cli("import", "openapi", str(described))
    assert '  Write url = "https://...", where the API is.' in ended.out.splitlines()
    assert '# To do: url = "https://...", where the API is' in settings.read_text()


@pytest.mark.parametrize(
    ("content", "said"), [('{"swagger": "2.0"}', "swagger2openapi"), ("x", "no OpenAPI version")]
)
def test_what_is_no_description_is_refused(
    cli: Command, settings: Path, described: Path, content: str, said: str
) -> None:
    described.write_text(content)
    ended = cli("import", "openapi", str(described))
    assert (ended.code, said in ended.err) == (1, True)
    assert "openapi" not in tomllib.loads(settings.read_text())


def test_a_file_has_to_be_named(cli: Command, settings: Path) -> None:
    assert cli("import", "openapi").code == 2
    assert cli("import", "openapi", "gone.yaml").code == 2
    assert "openapi" not in settings.read_text()
