"""Translates the arguments of other agents' tools to those of ours.

Each function changes arguments in place, or returns those of another tool. A ValueError says what
has no meaning here.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from glob import escape
from typing import Any

Arguments = dict[str, Any]

LONGEST_WAIT = 120.0  # seconds: the default time limit of bash


def must_be(arguments: Arguments, name: str, *, value: object) -> None:
    """Removes an argument that has the only value with a meaning here."""
    if (given := arguments.pop(name, value)) != value:
        raise ValueError(f"{name} is {given!r}.")


def lines_from_zero(arguments: Arguments) -> None:
    """Converts a first line counted from 0, and a number of lines; a negative first is a tail."""
    if arguments.keys().isdisjoint({"offset", "count"}):
        return
    first, count = int(arguments.pop("offset", 0)), arguments.pop("count", None)
    last = -1 if count is None or first < 0 else first + int(count)
    arguments["ranges"] = [first if first < 0 else first + 1, last]


def read_block(arguments: Arguments) -> None:
    """Reads lines as in Desktop Commander, whose read_file also opens URLs."""
    must_be(arguments, "isUrl", value=False)
    lines_from_zero(arguments)


def read_of_cursor(arguments: Arguments) -> None:
    """Reads lines as in Cursor, which counts them from 1."""
    first = arguments.pop("start_line_one_indexed", 1)
    last = arguments.pop("end_line_one_indexed_inclusive", -1)
    if not arguments.pop("should_read_entire_file", False) and (first, last) != (1, -1):
        arguments["ranges"] = [int(first), int(last)]


def lines_of_serena(arguments: Arguments) -> None:
    """Converts a first and a last line counted from 0."""
    if arguments.keys().isdisjoint({"start_line", "end_line"}):
        return
    first, last = int(arguments.pop("start_line", 0)), arguments.pop("end_line", None)
    arguments["ranges"] = [first + 1, -1 if last is None else int(last) + 1]


def in_bash(arguments: Arguments) -> None:
    """Accepts the shells whose commands bash runs."""
    shell = str(arguments.pop("shell", "bash"))
    if posixpath.basename(shell) not in {"bash", "sh", "zsh"}:
        raise ValueError(f"shell is {shell!r}; commands run in bash.")


def run_of_codex(arguments: Arguments) -> None:
    """Runs a command as in Codex, whose patience only counts beyond the time limit of bash."""
    must_be(arguments, "tty", value=False)
    must_be(arguments, "sandbox_permissions", value="use_default")
    in_bash(arguments)
    wait = float(arguments.pop("yield_time_ms", 0)) / 1000
    if wait > LONGEST_WAIT:
        arguments["timeout_seconds"] = wait


def start(arguments: Arguments) -> None:
    """Starts a command in the background."""
    in_bash(arguments)
    arguments["run_in_background"] = True


def run_of_copilot(arguments: Arguments) -> None:
    """Runs a command as in Copilot CLI, which may name its mode."""
    must_be(arguments, "detach", value=False)
    if arguments.pop("mode", "sync") == "async":
        arguments["run_in_background"] = True


def sandboxed(arguments: Arguments) -> None:
    """Runs a command as in Claude Code, whose sandbox a call may ask to leave."""
    must_be(arguments, "dangerouslyDisableSandbox", value=False)


def run_of_serena(arguments: Arguments) -> None:
    """Runs a command with the errors in its output."""
    must_be(arguments, "capture_stderr", value=True)


def job(arguments: Arguments) -> None:
    """Converts a process number, for which models send the job's id."""
    must_be(arguments, "offset", value=0)  # what was not returned yet
    must_be(arguments, "chars", value="")
    arguments["job_id"] = str(arguments["job_id"])


def plan(arguments: Arguments) -> None:
    """Converts the steps of Codex's plan to a to-do list."""
    arguments["todos"] = [
        {"content": step["step"], "status": step["status"]} for step in arguments.pop("plan")
    ]


def todos_of_cursor(arguments: Arguments) -> None:
    """Replaces a to-do list; merging into it has no meaning here."""
    must_be(arguments, "merge", value=False)


def todos_of_opencode(arguments: Arguments) -> None:
    """Leaves out the priorities, which change nothing but how a list looks."""
    arguments["todos"] = [
        {name: value for name, value in each.items() if name != "priority"}
        for each in arguments["todos"]
    ]


def todos_of_gemini(arguments: Arguments) -> None:
    """Converts the to-dos of Gemini CLI."""
    arguments["todos"] = [
        {"content": each["description"], "status": each["status"]} for each in arguments["todos"]
    ]


def edit_once(arguments: Arguments) -> None:
    """Edits one occurrence."""
    must_be(arguments, "expected_replacements", value=1)


def literal(arguments: Arguments) -> None:
    """Replaces a literal text."""
    if (mode := arguments.pop("mode")) != "literal":
        raise ValueError(f"mode is {mode!r}.")


def read_each(arguments: Arguments) -> Arguments:
    """Reads each file in a call of its own."""
    return calls_of(("read_file", {"file_path": path}) for path in arguments.pop("paths"))


def calls_of(calls: Iterator[tuple[str, Arguments]]) -> Arguments:
    """Returns the arguments of call_tools."""
    return {"calls": [{"name": name, "arguments": arguments} for name, arguments in calls]}


def path_of(arguments: Arguments, name: str) -> str:
    """Returns a path that can be written into a patch."""
    path = str(arguments.pop(name))
    if not path.strip() or "\n" in path or path != path.strip():
        raise ValueError(f"{name} is {path!r}.")
    return path


def move(arguments: Arguments) -> Arguments:
    """Moves a file by a patch."""
    source, target = path_of(arguments, "source"), path_of(arguments, "destination")
    head = f"*** Begin Patch\n*** Update File: {source}\n*** Move to: {target}"
    return {"patch": f"{head}\n*** End Patch\n", **arguments}


def delete(arguments: Arguments) -> Arguments:
    """Deletes a file by a patch."""
    path = path_of(arguments, "path")
    return {"patch": f"*** Begin Patch\n*** Delete File: {path}\n*** End Patch\n", **arguments}


def tree(arguments: Arguments) -> None:
    """Lists all levels."""
    no_exclusions(arguments)
    arguments["depth"] = 10


def whole_depth(arguments: Arguments) -> None:
    """Lists all levels if that is asked."""
    if arguments.pop("recursive", False):
        arguments["depth"] = 10


def sorted_by_name(arguments: Arguments) -> None:
    """Accepts the order by name."""
    must_be(arguments, "sortBy", value="name")


def no_exclusions(arguments: Arguments) -> None:
    """Accepts an empty list of exclusions."""
    must_be(arguments, "excludePatterns", value=[])


def like(arguments: Arguments) -> None:
    """Converts part of a path to a pattern."""
    arguments["pattern"] = f"**/*{escape(str(arguments['pattern']).strip('/'))}*"


def one_directory(arguments: Arguments) -> None:
    """Converts a directory, or a list of one."""
    for name in ("target_directories", "paths"):
        directories = arguments.pop(name, [])
        if isinstance(directories, str):
            directories = [directories]
        if len(directories) > 1:
            raise ValueError(f"{name} has more than one; search one after another.")
        if directories:
            arguments["path"] = directories[0]


def search_content(arguments: Arguments) -> None:
    """Searches lines as in Desktop Commander, by default whatever their case."""
    arguments.pop("searchType")
    must_be(arguments, "includeHidden", value=False)
    if arguments.pop("literalSearch", False):
        arguments["pattern"] = re.escape(arguments["pattern"])
    arguments["case_sensitive"] = not arguments.pop("ignoreCase", True)


def search_names(arguments: Arguments) -> None:
    """Searches the names of files as in Desktop Commander."""
    must_be(arguments, "searchType", value="files")
    must_be(arguments, "includeHidden", value=False)
    must_be(arguments, "ignoreCase", value=True)
    like(arguments)


def rewrite(arguments: Arguments) -> None:
    """Writes a whole file; appending has another tool."""
    must_be(arguments, "mode", value="rewrite")


def by_line(arguments: Arguments) -> None:
    """Searches line by line, in one directory."""
    must_be(arguments, "multiline", value=False)
    one_directory(arguments)


def by_case(arguments: Arguments) -> None:
    """Searches names in the case given."""
    must_be(arguments, "case_sensitive", value=True)


def fixed(arguments: Arguments) -> None:
    """Searches a text that is no regular expression."""
    if arguments.pop("fixed_strings"):
        arguments["pattern"] = re.escape(arguments["pattern"])


def page_text(arguments: Arguments) -> None:
    """Accepts what reads a page as text."""
    must_be(arguments, "raw", value=False)
    if (form := arguments.pop("format", "text")) not in {"text", "markdown"}:
        raise ValueError(f"format is {form!r}.")


def first_page(arguments: Arguments) -> None:
    """Accepts the first page of results."""
    must_be(arguments, "page", value=1)


def memory_alone(arguments: Arguments) -> None:
    """Searches memory alone."""
    arguments["scope"] = "memory"


def note(arguments: Arguments) -> None:
    """Keeps a note's folder and tags with it."""
    kept = {name: arguments.pop(name) for name in ("folder", "tags") if name in arguments}
    if kept:
        arguments["metadata"] = {**arguments.get("metadata", {}), **kept}


_ENTITY_TYPES = {"person", "project", "team", "organization", "other"}


def entities(arguments: Arguments) -> Arguments:
    """Saves entities, and remembers what is observed of them."""

    def calls() -> Iterator[tuple[str, Arguments]]:
        for entity in arguments.pop("entities"):
            kind = str(entity.get("entityType", "other")).lower()
            kind = kind if kind in _ENTITY_TYPES else "other"
            yield "save_entity", {"entity_name": entity["name"], "entity_type": kind}
            yield from _facts(entity["name"], entity.get("observations", ()))

    return calls_of(calls())


def observations(arguments: Arguments) -> Arguments:
    """Remembers what is observed of entities."""
    return calls_of(
        fact
        for each in arguments.pop("observations")
        for fact in _facts(each["entityName"], each["contents"])
    )


def _facts(name: str, texts: list[str]) -> Iterator[tuple[str, Arguments]]:
    for text in texts:
        yield "remember", {"content": f"{name}: {text}", "entities": [name]}


def relations(arguments: Arguments) -> Arguments:
    """Relates entities that are stored."""
    return calls_of(
        (
            "relate_entities",
            {"source": each["from"], "relation": each["relationType"], "target": each["to"]},
        )
        for each in arguments.pop("relations")
    )
