"""Weighs an installation beside other servers': `python -m benchmarks.weight`.

Needs uv and npm on the PATH, and the registries of PyPI and npm. Everything is installed into a
temporary folder, byte code included, and started once: its tools are listed over stdio.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio
from mcp import Client, MCPError, StdioServerParameters

ROOT = Path(__file__).parents[1]
PYTHON = "3.12"
"""The oldest that basic-memory takes."""

IS_PACKAGE = re.compile(r"/node_modules/(@[^/]+/)?[^/]+$")
EVERYTHING = ("--no-config",)
"""Makes uv install what pip installs: it does not read what this project leaves out."""


@dataclass(frozen=True)
class Product:
    """A server to install; packages of npm are named `npm:`."""

    name: str
    package: str
    command: Sequence[str]
    options: Sequence[str] = ()


PRODUCTS = (
    Product("Toolcrib, with uv", str(ROOT), ("toolcrib", "serve")),
    Product("Toolcrib, with pip", str(ROOT), ("toolcrib", "serve"), EVERYTHING),
    Product("basic-memory", "basic-memory", ("basic-memory", "mcp")),
    Product("chroma-mcp", "chroma-mcp", ("chroma-mcp", "--client-type", "ephemeral")),
    Product("Desktop Commander", "npm:@wonderwhy-er/desktop-commander", ("desktop-commander",)),
)


def install(product: Product, place: Path) -> tuple[Path, int]:
    """Installs a product; returns the folder of its commands and the number of its packages."""
    if product.package.startswith("npm:"):
        package = product.package.removeprefix("npm:")
        quiet = ("--silent", "--no-audit", "--no-fund", "--ignore-scripts")  # loads no browser
        run("npm", "install", *quiet, "--prefix", str(place), package)
        modules = place / "node_modules"
        manifests = modules.rglob("package.json")
        packages = [each for each in manifests if IS_PACKAGE.search(each.parent.as_posix())]
        return modules / ".bin", len(packages)
    run("uv", "venv", "--quiet", "--python", PYTHON, str(place))
    python = ("--python", str(place / "bin" / "python"))
    what = ("--quiet", "--compile-bytecode", *product.options, product.package)
    run("uv", "pip", "install", *python, *what)
    return place / "bin", len(list(place.rglob("*.dist-info")))


def run(*command: str) -> None:
    """Runs a command in this checkout."""
    subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)


async def tools_of(command: Sequence[str], home: Path) -> int:
    """Starts a server as a client does, and counts its tools."""
    environ = {"HOME": str(home), "PATH": os.environ["PATH"]}
    server = StdioServerParameters(command=command[0], args=list(command[1:]), env=environ)
    with anyio.fail_after(120):
        async with Client(server) as client:
            return len((await client.list_tools()).tools)


def main() -> None:
    """Prints a row for each product."""
    print(f"{'':20} {'MB':>6} {'packages':>9} {'tools':>6} {'listed after':>13}")
    for product in PRODUCTS:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            place, home = Path(folder, "place"), Path(folder, "home")
            place.mkdir()
            home.mkdir()
            commands, packages = install(product, place)
            files = [each.lstat() for each in place.rglob("*") if not each.is_symlink()]
            size = sum(each.st_blocks * 512 for each in files) / 1e6
            started = time.monotonic()
            command = (str(commands / product.command[0]), *product.command[1:])
            try:
                listed = f"{anyio.run(tools_of, command, home):6}"
                listed += f" {time.monotonic() - started:11.2f} s"
            except* (MCPError, TimeoutError):
                listed = "  does not start"
        print(f"{product.name:20} {size:6.0f} {packages:9} {listed}", flush=True)


if __name__ == "__main__":
    main()
