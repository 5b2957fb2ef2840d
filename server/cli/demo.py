"""`toolcrib demo`: runs the main use case end to end on a folder of documents."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import typer

from server.cli.terminal.screen import echo, fail
from server.mcp.visible import visible

if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import CallToolResult
    from rich.progress import Progress

SAMPLE = Path(__file__).parents[1] / "samples" / "demo"
"""A made-up family's notes, letters, tables and chat."""

QUESTIONS = (
    "What is my daughter allergic to?",  # shares no word with the answer
    "Which of my books does Pryanka have?",  # stored as Priyanka
    "When is our flight to Portugal?",
    "How long is the guarantee of the washing machine?",
    "What is the password of the wifi at work?",  # not in the sample
)
"""Questions about the sample."""

MOST_QUESTIONS = 3
"""Questions about another folder, one per document."""

MOST_FILES = 100
WAIT_SECONDS = 60.0
LOOK_EVERY = 0.1
INDEX_URI = "context://index"


def demo(
    folder: Annotated[
        Path | None,
        typer.Argument(
            help="Folder of documents; by default a sample.", exists=True, file_okay=False
        ),
    ] = None,
    ask: Annotated[
        list[str] | None, typer.Option("--ask", help="A question to ask; may be repeated.")
    ] = None,
) -> None:
    """Start a server, add the documents of a folder to it, and ask questions."""
    from server.settings.sources import load

    load()  # reports invalid settings here, before the server reads them
    documents = folder.resolve() if folder else SAMPLE
    # A server that is stopped midway may still write while its directory is removed.
    with tempfile.TemporaryDirectory(prefix="toolcrib-demo-", ignore_cleanup_errors=True) as data:
        found = anyio.run(_demo, documents, Path(data), ask or [])
    if not found:
        fail(f"Error: No documents in {documents}: nothing to ask.")
    _print_clients()


async def _demo(folder: Path, data_dir: Path, questions: list[str]) -> bool:
    """Adds documents and asks questions; returns whether any document was added."""
    from mcp import Client, MCPError, StdioServerParameters

    from server.clients.locations import command_path
    from tools.core.errors import UnavailableError

    arguments = ["serve", "--root", str(folder), "--data-dir", str(data_dir)]
    parameters = StdioServerParameters(
        command=str(command_path()), args=arguments, env={"TOOLCRIB_RESULTS": "both"}
    )
    try:
        async with Client(parameters) as client:
            tools = (await client.list_tools()).tools
            echo(f"Connected over stdio, protocol {client.protocol_version}: {len(tools)} tools.")
            added = await _add_documents(client, folder)
            if added:
                top_k = 1 if folder == SAMPLE else 3
                for question in questions or _questions(folder, added):
                    await _ask(client, question, top_k)
            return bool(added)
    except* (MCPError, OSError) as errors:
        first: BaseException = errors
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise UnavailableError(
            f"The server {command_path()} does not answer: {first}.",
            next_actions=["Read its output above, and run `toolcrib doctor`."],
        ) from errors


def _questions(folder: Path, added: list[dict[str, Any]]) -> list[str]:
    if folder == SAMPLE:
        return list(QUESTIONS)
    largest = sorted(added, key=lambda document: -document["chunks"])[:MOST_QUESTIONS]
    return [f"What is said about {document['title']}?" for document in largest]


async def _add_documents(client: Client, folder: Path) -> list[dict[str, Any]]:
    from server.cli.data.walk import Folder
    from server.cli.terminal.progress import bars
    from server.cli.terminal.screen import console, print_line
    from tools.core.errors import InvalidArgumentsError

    files = list(Folder(folder).files())
    added = []
    with bars(console()) as progress:
        if len(files) > MOST_FILES:
            print_line(
                progress.console,
                f"The first {MOST_FILES} of {len(files)} files; `import` takes all.",
            )
        task = progress.add_task("Adding", total=len(files[:MOST_FILES]), detail="")
        for file in files[:MOST_FILES]:
            progress.update(task, detail=visible(file.name))
            try:
                added.append(await _add(client, file.relative_to(folder)))
            except InvalidArgumentsError as error:
                print_line(progress.console, f"Skipped: {error.message}")
            progress.advance(task)
        progress.update(task, detail="")
        if added:
            await _wait_for_embeddings(client, progress)
    return added


async def _add(client: Client, name: Path) -> dict[str, Any]:
    """Adds one file as any client would."""
    from server.cli.data.walk import check_name
    from tools.core.errors import InvalidArgumentsError

    check_name(name)
    result = await client.call_tool("add_document", {"path": name.as_posix()})
    if result.is_error:
        raise InvalidArgumentsError(_message(result))
    return result.structured_content or {}


async def _wait_for_embeddings(client: Client, progress: Progress) -> None:
    """Waits for all embeddings, up to a limit; searches work meanwhile."""
    task = progress.add_task("Embedding", total=None, detail="")
    with anyio.move_on_after(WAIT_SECONDS):
        while True:
            resource = await client.read_resource(INDEX_URI)
            status = json.loads(resource.contents[0].model_dump()["text"])
            progress.update(task, total=status["total"], completed=status["embedded"])
            if status["complete"] or status["problem"]:
                return
            await anyio.sleep(LOOK_EVERY)


async def _ask(client: Client, question: str, top_k: int) -> None:
    from rich.console import Console
    from rich.text import Text

    from server.cli.terminal.hits import print_hits

    console = Console()
    console.rule(Text(visible(question), "bold"), align="left")
    # Excludes the session itself: its record contains the calls that added the documents.
    asked = {"query": question, "top_k": top_k, "filters": {"kinds": ["document"]}}
    result = await client.call_tool("query", asked)
    if result.is_error:
        console.print(Text(visible(_message(result)), "red"))
    else:
        print_hits(result.structured_content or {}, question, console)


def _message(failure: CallToolResult) -> str:
    """Returns the first line of a failure, without its type."""
    text = "\n".join(getattr(content, "text", "") for content in failure.content)
    return text.partition("\n")[0].partition(": ")[2]


def _print_clients() -> None:
    from rich.console import Console
    from rich.text import Text

    from server.cli.invocation import invocation
    from server.clients.table import found_clients

    Console().rule(Text("Connect a client", "bold"), align="left")
    found = ", ".join(each.title for each in found_clients(os.environ))
    echo(f"Found on this machine: {found or 'no MCP client that this command knows'}.")
    command = f"{invocation()} install"
    echo(f"  `{command}`            adds Toolcrib to them; shows the changes and asks first")
    echo(f"  `{command} --dry-run`  only shows the changes")
    echo(f"  `{command} --print`    prints the entry for any other client")
