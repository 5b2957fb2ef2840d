"""`toolcrib memory`: shows what hooks capture, and pauses and resumes them."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from server.cli.terminal.options import ConfigOption, DataDirOption, JsonOption
from server.cli.terminal.screen import check_person, echo, print_json
from server.mcp.visible import visible

if TYPE_CHECKING:
    from server.hooks.exclusions import Paused
    from storage.database import Database


class Action(StrEnum):
    """The action of the command."""

    STATUS = "status"
    PAUSE = "pause"
    RESUME = "resume"


def memory(
    action: Annotated[
        Action,
        typer.Argument(
            help="status: what is captured; pause: capture and show nothing until you resume."
        ),
    ] = Action.STATUS,
    project: Annotated[
        Path | None,
        typer.Option("--project", metavar="DIR", help="Only the project of this directory."),
    ] = None,
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Show, pause or resume what the hooks of clients remember."""
    from server.hooks.events import store_left
    from server.hooks.exclusions import read_paused, set_paused
    from server.hooks.project import project_of
    from server.settings.sources import load
    from storage.database import RECORD, Database

    if action is not Action.STATUS:
        check_person("Pausing or resuming the memory")
    settings = load({"data_dir": data_dir}, config_file=config)
    store_left(settings.data_dir)  # a pause is about what comes after it, until its end
    with closing(Database(settings.data_dir / RECORD)) as database:
        if action is Action.STATUS:
            status = _status(database, read_paused(database), capture=settings.memory.capture)
            print_json(status) if as_json else _show(status)
            return
        which = None if project is None else project_of(project).directory
        after = set_paused(database, which, paused=action is Action.PAUSE)
    where = "everywhere" if which is None else f"for {visible(str(which))}"
    echo(f"The memory is {'paused' if action is Action.PAUSE else 'on'} {where}.")
    if which is not None and action is Action.RESUME and after.everywhere:
        echo("It is still paused everywhere: run `toolcrib memory resume` without --project.")


def _status(database: Database, paused: Paused, *, capture: bool) -> dict[str, Any]:
    from storage.memory.captured import CONVERSATION, last_fired

    (row,) = database.rows(
        "SELECT count(*) AS sessions, count(DISTINCT s.project) AS projects,"
        " max(x.update_time) AS last FROM contexts x JOIN sessions s ON s.id = x.raw_id"
        " AND s.user_id = x.user_id WHERE x.raw_type = ?",
        (CONVERSATION,),
    )
    return {
        "capture": capture,
        "paused": paused.everywhere,
        "paused_projects": list(paused.projects),
        "sessions": row["sessions"],
        "projects": row["projects"],
        "last": row["last"],
        "hooks": {
            client: {"event": event, "time": moment}
            for client, (event, moment) in sorted(last_fired(database).items())
        },
    }


def _show(status: dict[str, Any]) -> None:
    from server.hooks.payloads import CLIENTS
    from tools.answers.directory import counted

    on = "paused" if status["paused"] else "on"
    echo(f"Memory: {on if status['capture'] else 'off, by the setting memory.capture'}")
    for project in status["paused_projects"]:
        echo(f"Paused: {visible(project)}")
    sessions = counted(status["sessions"], "session")
    echo(f"Captured: {sessions} in {counted(status['projects'], 'project')}")
    if not status["hooks"]:
        echo("Hooks: none has fired yet")
    for client, fired in status["hooks"].items():
        moment = datetime.fromtimestamp(fired["time"], UTC).astimezone()
        name = CLIENTS[client].title if client in CLIENTS else client
        echo(f"Hooks of {name}: {fired['event']}, {moment:%Y-%m-%d %H:%M}")
