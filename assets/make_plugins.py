"""Makes the packages that clients install Toolcrib from: `plugins/` and what lists them.

    python assets/make_plugins.py                          # writes them
    python assets/make_plugins.py --bundle toolcrib.mcpb   # a bundle for Claude Desktop

Their versions and keywords come from `pyproject.toml`, plugins from `server/clients/plugins.py`.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from server.clients.client import Launch
from server.clients.plugins import AUTHOR, PLUGINS, SUMMARY, as_json, plugin_files, skill
from server.hooks.registration import hook_pieces

ROOT = Path(__file__).parents[1]
REGISTRY_NAME = "io.github.toolcrib/toolcrib"
"""The name in the MCP Registry: the owner of the part before the slash publishes it."""

AGENT_PLUGINS = "https://agent-plugins.org/schemas/1.0.0"
SERVER_SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"

BUNDLED = ("pyproject.toml", "README.md", "LICENSE", "NOTICE", "docs", "server", "storage", "tools")
"""What a bundle holds of the repository: all that its wheel is built of."""


@dataclass(frozen=True, slots=True)
class Project:
    """The fields of `pyproject.toml` that manifests repeat."""

    version: str
    license: str
    keywords: list[str]
    python: str

    @classmethod
    def read(cls) -> Project:
        """Reads `pyproject.toml`."""
        project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
        return cls(
            project["version"], project["license"], project["keywords"], project["requires-python"]
        )

    def about(self) -> dict[str, Any]:
        """Returns the fields that every manifest of a plugin has."""
        return {"name": "toolcrib", "version": self.version, "description": SUMMARY}


def generate(project: Project) -> dict[str, str]:
    """Returns the text of every file, by its path in the repository."""
    files = {path: as_json(value) for path, value in _manifests(project)}
    more = {"author": AUTHOR, "license": project.license, "keywords": project.keywords}
    for client in PLUGINS:
        hooks = hook_pieces(client, ["toolcrib"], ROOT)
        launch = Launch("toolcrib", ("serve",))
        files |= plugin_files(client, {**project.about(), **more}, launch, hooks)
    return {**files, "plugins/agent/skills/toolcrib/SKILL.md": skill()}


def _manifests(project: Project) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields each other manifest: the server starts in the client's working directory, its root."""
    about = project.about()
    more = {"author": AUTHOR, "license": project.license, "keywords": project.keywords}
    server = {"type": "stdio", "command": "toolcrib", "args": ["serve"]}

    schema = {"$schema": f"{AGENT_PLUGINS}/plugin.schema.json"}
    yield "plugins/agent/plugin.json", {**schema, **about, **more}
    servers = {"$schema": f"{AGENT_PLUGINS}/mcp.schema.json", "mcpServers": {"toolcrib": server}}
    yield "plugins/agent/mcp.json", servers
    yield "plugins/mcpb/manifest.json", _bundle_manifest(project)
    yield (
        "server.json",
        {
            "$schema": SERVER_SCHEMA,
            **about,
            "name": REGISTRY_NAME,
            "title": "Toolcrib",
            "packages": [
                {
                    "registryType": "pypi",
                    "identifier": "toolcrib",
                    "version": project.version,
                    "runtimeHint": "uvx",
                    "transport": {"type": "stdio"},
                    "packageArguments": [{"type": "positional", "value": "serve"}],
                }
            ],
        },
    )


def _bundle_manifest(project: Project) -> dict[str, Any]:
    running = ["run", "--no-dev", "--directory", "${__dirname}", "toolcrib", "serve", "--root"]
    return {
        "manifest_version": "0.4",
        **project.about(),
        "display_name": "Toolcrib",
        "author": AUTHOR,
        "license": project.license,
        "keywords": project.keywords,
        "server": {
            "type": "uv",
            "entry_point": "server/cli/__init__.py",
            "mcp_config": {"command": "uv", "args": [*running, "${user_config.root}"]},
        },
        "user_config": {
            "root": {
                "type": "directory",
                "title": "Folder",
                "required": True,
                "description": "The only folder whose files and programs agents reach.",
                "default": "${DOCUMENTS}/Toolcrib",
            }
        },
        "tools_generated": True,
        "compatibility": {"platforms": ["darwin", "linux"], "runtimes": {"python": project.python}},
    }


def bundle(target: Path) -> None:
    """Packs the manifest and this repository, as committed or changed, into one file."""
    git = ["git", "ls-files", "-z", "--", *BUNDLED]
    listed = subprocess.run(git, cwd=ROOT, check=True, capture_output=True, text=True)  # noqa: S603  # constants
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", as_json(_bundle_manifest(Project.read())))
        for name in filter(None, listed.stdout.split("\0")):
            archive.write(ROOT / name, name)


def main() -> None:
    """Makes the files, or a bundle."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bundle", type=Path, help="the file of the bundle to make")
    target = parser.parse_args().bundle
    if target:
        bundle(target)
        sys.stdout.write(f"{target}: {target.stat().st_size / 1e6:.0f} MB\n")
        return
    shutil.rmtree(ROOT / "plugins", ignore_errors=True)
    for name, text in generate(Project.read()).items():
        path = ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{name}\n")


if __name__ == "__main__":
    main()
