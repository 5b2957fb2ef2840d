"""The packages in `plugins/` are what their source makes, and say how to start this server."""

import json
import runpy
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
MAKER = ROOT / "assets" / "make_plugins.py"


@pytest.fixture(scope="module")
def maker() -> dict[str, Any]:
    return runpy.run_path(str(MAKER))


def test_the_packages_are_what_their_source_makes(maker: dict[str, Any]) -> None:
    files = maker["generate"](maker["Project"].read())
    present = {path.relative_to(ROOT).as_posix() for path in (ROOT / "plugins").rglob("*.*")}
    assert {path for path in present if (ROOT / path).is_file()} <= set(files)
    stale = [path for path, text in files.items() if (ROOT / path).read_text("utf-8") != text]
    assert stale == [], "Run: python assets/make_plugins.py"


def test_the_readme_names_the_server_as_the_registry_does() -> None:
    name = json.loads((ROOT / "server.json").read_text("utf-8"))["name"]
    assert f"<!-- mcp-name: {name} -->" in (ROOT / "README.md").read_text("utf-8")


def test_a_bundle_holds_a_manifest_and_what_the_wheel_is_built_of(
    maker: dict[str, Any], tmp_path: Path
) -> None:
    maker["bundle"](tmp_path / "toolcrib.mcpb")
    with zipfile.ZipFile(tmp_path / "toolcrib.mcpb") as archive:
        names = set(archive.namelist())
        manifest = json.loads(archive.read("manifest.json"))
    assert names >= {"pyproject.toml", "README.md", "LICENSE", "NOTICE", "docs/README.md"}
    assert manifest["server"]["entry_point"] in names
    assert not any(name.startswith("tests/") for name in names)
