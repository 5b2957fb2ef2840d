"""`toolcrib demo`: the main job, end to end, on a folder of documents."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import typer

if TYPE_CHECKING:
    from mcp import Client
    from rich.console import Console
    from rich.progress import Progress, TaskID

__all__ = ["demo"]

QUESTIONS = (
    "How does a tool call travel through the floors?",
    "What happens to a document that was added just before a crash?",
    "How do I add a tool of my own?",
)
"""What the project's own documents answer."""

MOST_FILES = 100
WAIT_SECONDS = 60.0
LOOK_EVERY = 0.1
INDEX_URI = "context://index"


def demo(
    folder: Annotated[
        Path | None, typer.Argument(help="Documents to ask; by default the project's own.")
    ] = None,
    ask: Annotated[
        list[str] | None, typer.Option("--ask", help="A question; can be given several times.")
    ] = None,
) -> None:
    """Start the real server, add a folder's documents as a client, and ask three questions."""
    from server.settings import SettingsError  # noqa: PLC0415  # `--help` does not wait for it

    folder = (folder or _bundled_documents()).absolute()
    if not folder.is_dir():
        raise SettingsError(f"{folder} is not a folder: name one that holds documents.")
    with tempfile.TemporaryDirectory(prefix="toolcrib-demo-") as data_dir:
        anyio.run(_demo, folder, Path(data_dir), ask or [])


def _bundled_documents() -> Path:
    """The project's documents: beside this package in a wheel, beside the floors in a checkout."""
    import server  # noqa: PLC0415  # only to learn where it is

    package = Path(next(iter(server.__path__)))
    bundled = package / "docs"
    return bundled if bundled.is_dir() else package.parent / "docs"


async def _demo(folder: Path, data_dir: Path, questions: list[str]) -> None:
    from mcp import Client, StdioServerParameters  # noqa: PLC0415  # `--help` does not wait for it
    from rich.console import Console  # noqa: PLC0415  # the same

    from server.clients import command_path  # noqa: PLC0415  # the same

    console = Console()
    arguments = ["serve", "--root", str(folder), "--data-dir", str(data_dir)]
    server = StdioServerParameters(command=str(command_path()), args=arguments)
    async with Client(server) as client:
        tools = (await client.list_tools()).tools
        console.print(
            f"Connected over stdio, protocol {client.protocol_version}: {len(tools)} tools."
        )
        added = await _add_documents(client, folder, console)
        if not added:
            console.print(f"No documents in {folder}: nothing to ask.", markup=False)
            sys.exit(1)
        for question in questions or _questions(folder, added):
            await _ask(client, question, console)
    _print_clients(console, folder)


def _questions(folder: Path, added: list[dict[str, Any]]) -> list[str]:
    if folder == _bundled_documents().absolute():
        return list(QUESTIONS)
    largest = sorted(added, key=lambda document: -document["chunks"])[: len(QUESTIONS)]
    return [f"What is said about {document['title']}?" for document in largest]


async def _add_documents(client: Client, folder: Path, console: Console) -> list[dict[str, Any]]:
    from rich.progress import Progress  # noqa: PLC0415  # imported on first use

    from server.cli.progress import columns  # noqa: PLC0415  # the same
    from server.cli.walk import files_beneath  # noqa: PLC0415  # the same

    files = list(files_beneath(folder))
    if len(files) > MOST_FILES:
        console.print(f"Taking the first {MOST_FILES} of {len(files)} files; `add` takes all.")
    added = []
    with Progress(*columns(), console=console) as progress:
        task = progress.add_task("Adding documents", total=len(files[:MOST_FILES]))
        for file in files[:MOST_FILES]:
            path = file.relative_to(folder).as_posix()
            result = await client.call_tool("add_document", {"path": path})
            answer = result.structured_content
            if result.is_error:
                progress.console.print(f"skipped {path}: {answer['message']}", markup=False)
            else:
                added.append(answer)
            progress.advance(task)
        if added:
            await _embedded(client, progress, progress.add_task("Embedding", total=None))
    return added


async def _embedded(client: Client, progress: Progress, task: TaskID) -> None:
    """Waits until everything has its vector, or long enough; a search works at any time."""
    import json  # noqa: PLC0415  # imported on first use

    with anyio.move_on_after(WAIT_SECONDS):
        while True:
            resource = await client.read_resource(INDEX_URI)
            status = json.loads(resource.contents[0].model_dump()["text"])
            progress.update(task, total=status["total"], completed=status["embedded"])
            if status["complete"]:
                return
            await anyio.sleep(LOOK_EVERY)


async def _ask(client: Client, question: str, console: Console) -> None:
    from server.cli.hits import print_hits  # noqa: PLC0415  # imported on first use

    console.rule(question, align="left")
    result = await client.call_tool("query", {"query": question, "top_k": 3})
    print_hits(result.structured_content, console)


def _print_clients(console: Console, folder: Path) -> None:
    from server.clients import CLIENTS, command_path  # noqa: PLC0415  # imported on first use

    console.rule("Connect a client", align="left")
    for client in CLIENTS:
        console.print(f"{client.name}: {client.config}", style="bold", markup=False)
        console.print(client.snippet(command_path(), folder), markup=False, soft_wrap=True)
