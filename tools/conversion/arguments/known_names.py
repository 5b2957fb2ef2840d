"""Lists the names that models know from other agents and servers, and what they mean here.

A row is here only if a call means the same here. The names whose arguments already fit are with
their tools (`aliases_elsewhere`, `Alias`).

Compared with what the programs send to a model (Claude Code 2.1, Codex 0.171, Gemini CLI 0.61,
opencode 1.18, Copilot CLI 1.0.102), and with the sources of server-filesystem and server-memory
2026.8, Desktop Commander 0.2.52, fetch 2026.10, mem0-mcp-server 0.2.1, basic-memory 0.24.1 and, in
part, Serena 2.1. Not compared are the tools that Claude Code loads on demand, and those of Cursor,
Cline, Roo Code and OpenMemory, which are as commonly known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tools.conversion.arguments import translations
from tools.conversion.arguments.translations import Arguments
from tools.core.errors import InvalidArgumentsError
from tools.core.toolset import folded_name


@dataclass(frozen=True, slots=True)
class KnownName:
    """A name that models know from elsewhere, and what a call under it means here.

    Attributes:
        name: The name, in any spelling.
        tool: The tool that does the same.
        rename: Our names of arguments, by theirs.
        ignored: Arguments without which the call means the same.
        read: Translates values after renaming, in place; a ValueError says what has no meaning.
        needs: Arguments of which one must be sent, for a name that has other meanings too.
        where: The value that an argument must have, likewise.
    """

    name: str
    tool: str
    rename: Mapping[str, str] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    read: Callable[[Arguments], Arguments | None] | None = None
    needs: tuple[str, ...] = ()
    where: Mapping[str, object] = field(default_factory=dict)

    def means(self, given: Mapping[str, Any]) -> bool:
        """Returns whether a call with these arguments is meant."""
        is_sent = not self.needs or not given.keys().isdisjoint(self.needs)
        return is_sent and all(given.get(each) == value for each, value in self.where.items())

    def translate(self, given: Mapping[str, Any]) -> Arguments:
        """Returns the arguments of our tool; unknown ones stay, for its own error."""
        arguments = {
            self.rename.get(name, name): value
            for name, value in given.items()
            if name not in self.ignored and value is not None
        }
        if self.read is None:
            return arguments
        try:
            changed = self.read(arguments)
        except KeyError as error:
            raise InvalidArgumentsError(
                f"{self.name} lacks {error.args[0]!r}.",
                next_actions=[f"Send it, or call {self.tool}."],
            ) from None
        except (ArithmeticError, AttributeError, TypeError, ValueError) as error:
            raise InvalidArgumentsError(
                f"{self.name} has no faithful meaning here with these arguments: {error}",
                next_actions=[f"Call {self.tool} as describe_tool shows it."],
            ) from None
        return arguments if changed is None else changed


_WHY = ("explanation",)  # Cursor: a sentence for the person
_OF_SEARCH = ("origin", "timeout_ms", "earlyTermination")  # the same
_LIMIT = ("max_answer_chars",)  # Serena: of the answer, which has a limit here too
_FOR_UI = ("origin", "verbose_timing")  # Desktop Commander

NAMES = (
    # Cursor
    KnownName(
        "read_file",
        "read_file",
        {"target_file": "file_path"},
        _WHY,
        translations.read_of_cursor,
        needs=("target_file",),
    ),
    KnownName(
        "list_dir",
        "list_directory",
        {"relative_workspace_path": "path", "target_directory": "path"},
        _WHY,
        needs=("relative_workspace_path", "target_directory"),
    ),
    KnownName("codebase_search", "search_files", {}, _WHY, translations.one_directory),
    KnownName("file_search", "glob", {"query": "pattern"}, _WHY, translations.like),
    KnownName(
        "grep_search",
        "grep",
        {"query": "pattern", "include_pattern": "file_pattern"},
        _WHY,
        needs=("query",),
    ),
    KnownName(
        "glob_file_search", "glob", {"glob_pattern": "pattern", "target_directory": "path"}, _WHY
    ),
    KnownName("web_search", "web_search", {"search_term": "query"}, _WHY, needs=("search_term",)),
    KnownName("run_terminal_cmd", "bash", {}, (*_WHY, "require_user_approval")),
    KnownName("delete_file", "apply_patch", {"target_file": "path"}, _WHY, translations.delete),
    KnownName("todo_write", "todo", {}, (), translations.todos_of_cursor, needs=("merge",)),
    # Codex
    KnownName(
        "exec_command",
        "bash",
        {"cmd": "command", "workdir": "cwd"},
        ("max_output_tokens", "login", "justification", "prefix_rule"),
        translations.run_of_codex,
    ),
    KnownName("update_plan", "todo", {}, ("explanation",), translations.plan, needs=("plan",)),
    KnownName("grep_files", "grep", {"limit": "max_results"}, needs=("limit",)),
    KnownName(
        "write_stdin",
        "bash_output",
        {"session_id": "job_id"},
        ("max_output_tokens", "yield_time_ms"),
        translations.job,
    ),
    # Claude Code, and Copilot CLI, which has several paths
    KnownName("Grep", "grep", {}, (), translations.by_line, needs=("multiline", "paths")),
    KnownName("Bash", "bash", {}, (), translations.sandboxed, needs=("dangerouslyDisableSandbox",)),
    KnownName("Read", "read_file", {}, ("allow_large",), needs=("allow_large",)),
    KnownName("ToolSearch", "search_tools", {"max_results": "top_k"}),
    # Gemini CLI: its read_file counts lines from 0 where it calls the path absolute_path
    KnownName(
        "read_file",
        "read_file",
        {"absolute_path": "file_path", "limit": "count"},
        (),
        translations.lines_from_zero,
        needs=("absolute_path",),
    ),
    KnownName("grep_search", "grep", {}, (), translations.fixed, needs=("fixed_strings",)),
    KnownName(
        "glob",
        "glob",
        {},
        ("respect_gemini_ignore",),
        translations.by_case,
        needs=("case_sensitive", "respect_gemini_ignore"),
    ),
    KnownName("write_todos", "todo", {}, (), translations.todos_of_gemini),
    KnownName("run_shell_command", "bash", {}, ("delay_ms",), needs=("delay_ms",)),
    # opencode
    KnownName("todowrite", "todo", {}, (), translations.todos_of_opencode, needs=("todos",)),
    KnownName(
        "webfetch",
        "read_web_page",
        {},
        ("timeout",),
        translations.page_text,
        needs=("format", "timeout"),
    ),
    # Copilot CLI
    KnownName(
        "bash",
        "bash",
        {},
        ("initial_wait",),
        translations.run_of_copilot,
        needs=("mode", "detach", "initial_wait"),
    ),
    KnownName("read_bash", "bash_output", {"shellId": "job_id"}, ("delay",)),
    KnownName("stop_bash", "bash_kill", {"shellId": "job_id"}),
    KnownName("view", "read_file", {}, ("forceReadLargeFiles",), needs=("forceReadLargeFiles",)),
    KnownName("glob", "glob", {}, (), translations.one_directory, needs=("paths",)),
    # The official filesystem server
    KnownName("edit_file", "multi_edit", needs=("edits",)),
    KnownName("read_multiple_files", "call_tools", {}, (), translations.read_each),
    KnownName("directory_tree", "list_directory", {}, (), translations.tree),
    KnownName("list_directory_with_sizes", "list_directory", {}, (), translations.sorted_by_name),
    KnownName("move_file", "apply_patch", {}, (), translations.move),
    KnownName("search_files", "glob", {}, (), translations.no_exclusions, needs=("pattern",)),
    # Desktop Commander
    KnownName(
        "read_file",
        "read_file",
        {"path": "file_path", "length": "count"},
        _FOR_UI,
        translations.read_block,
        needs=("length", "isUrl"),
    ),
    KnownName("edit_block", "edit_file", {}, _FOR_UI, translations.edit_once),
    KnownName("start_process", "bash", {}, (*_FOR_UI, "timeout_ms"), translations.start),
    KnownName(
        "read_process_output",
        "bash_output",
        {"pid": "job_id"},
        (*_FOR_UI, "timeout_ms", "length"),
        translations.job,
    ),
    KnownName("force_terminate", "bash_kill", {"pid": "job_id"}, (), translations.job),
    KnownName("write_file", "write_file", {}, _FOR_UI, translations.rewrite, needs=("mode",)),
    KnownName(
        "start_search",
        "grep",
        {
            "filePattern": "file_pattern",
            "maxResults": "max_results",
            "contextLines": "context_lines",
        },
        _OF_SEARCH,
        translations.search_content,
        where={"searchType": "content"},
    ),
    KnownName(
        "start_search",
        "glob",
        {"maxResults": "max_results"},
        (*_OF_SEARCH, "contextLines"),
        translations.search_names,
    ),
    # Cline and Roo Code
    KnownName("execute_command", "bash", {}, ("requires_approval",)),
    KnownName("write_to_file", "write_file", {}, ("line_count",)),
    KnownName("list_files", "list_directory", {}, (), translations.whole_depth),
    KnownName("search_files", "grep", {"regex": "pattern"}, needs=("regex",)),
    # Serena
    KnownName(
        "read_file",
        "read_file",
        {"relative_path": "file_path"},
        _LIMIT,
        translations.lines_of_serena,
        needs=("relative_path",),
    ),
    KnownName("create_text_file", "write_file", {"relative_path": "file_path"}),
    KnownName(
        "list_dir",
        "list_directory",
        {"relative_path": "path"},
        _LIMIT,
        translations.whole_depth,
        needs=("relative_path",),
    ),
    KnownName("find_file", "glob", {"file_mask": "pattern", "relative_path": "path"}),
    KnownName(
        "replace_content",
        "edit_file",
        {
            "relative_path": "file_path",
            "needle": "old_text",
            "repl": "new_text",
            "allow_multiple_occurrences": "replace_all",
        },
        (),
        translations.literal,
    ),
    KnownName("execute_shell_command", "bash", {}, _LIMIT, translations.run_of_serena),
    # Memory servers: server-memory, mem0 and OpenMemory, basic-memory
    KnownName("create_entities", "call_tools", {}, (), translations.entities),
    KnownName("add_observations", "call_tools", {}, (), translations.observations),
    KnownName("create_relations", "call_tools", {}, (), translations.relations),
    KnownName("search_nodes", "query"),
    KnownName("add_memory", "remember", {"text": "content", "memory": "content"}),
    KnownName("add_memories", "remember", {"text": "content"}),
    KnownName("search_memory", "query", {"limit": "top_k"}, (), translations.memory_alone),
    KnownName("search_memories", "query", {"limit": "top_k"}, (), translations.memory_alone),
    KnownName(
        "search_notes",
        "query",
        {"page_size": "top_k", "limit": "top_k"},
        ("output_format",),
        translations.first_page,
    ),
    KnownName(
        "write_note",
        "add_document",
        {"content": "text", "directory": "folder"},
        ("output_format",),
        translations.note,
    ),
    # The official fetch server
    KnownName(
        "fetch",
        "read_web_page",
        {"max_length": "max_characters", "start_index": "offset"},
        (),
        translations.page_text,
    ),
)

NEAREST: Mapping[str, tuple[str, ...]] = {
    folded_name(name): tuple(closest)
    for name, *closest in (
        # What each does has no faithful meaning here; these come closest.
        ("get_file_info", "list_directory", "read_file"),
        ("list_allowed_directories", "list_directory"),
        ("create_directory", "write_file", "bash"),
        ("interact_with_process", "bash"),
        ("read_background_output", "bash_output"),
        ("list_background_processes", "bash_output", "bash"),
        ("list_bash", "bash_output", "bash"),
        ("list_processes", "bash"),
        ("kill_process", "bash_kill", "bash"),
        ("list_sessions", "bash_output", "bash"),
        ("get_more_search_results", "grep", "glob"),
        ("replace_in_file", "edit_file", "apply_patch"),
        ("apply_diff", "edit_file", "apply_patch"),
        ("NotebookEdit", "edit_file", "read_file"),
        ("read_many_files", "glob", "call_tools", "read_file"),
        ("list_code_definition_names", "grep"),
        ("search_for_pattern", "grep", "search_files"),
        ("find_symbol", "grep", "search_files"),
        ("get_symbols_overview", "grep"),
        ("Task", "delegate_task", "create_plan"),
        ("Agent", "delegate_task", "create_plan"),
        ("invoke_agent", "delegate_task", "delegate_to_agent"),
        ("read_media_file", "read_file"),
        ("read_graph", "browse_memory", "retrieve_profile_context"),
        ("open_nodes", "retrieve_profile_context", "query"),
        ("delete_entities", "delete_entity", "forget"),
        ("delete_observations", "forget"),
        ("delete_relations", "unrelate_entities"),
        ("list_memories", "browse_memory"),
        ("get_memories", "browse_memory"),
        ("write_memory", "remember"),
        ("read_memory", "query", "browse_memory"),
        ("delete_memory", "forget"),
        ("delete_all_memories", "forget"),
        ("read_note", "get_document", "query"),
        ("edit_note", "add_document"),
        ("build_context", "query"),
        ("recent_activity", "browse_memory", "query_events"),
        ("browser_navigate", "read_web_page", "http_request"),
        ("git_status", "bash"),
        ("git_diff", "bash"),
        ("git_commit", "bash"),
        ("git_log", "bash"),
    )
}
"""The closest tools by names that mean something else than any of them, folded."""


def names_of(tool: str) -> tuple[str, ...]:
    """Returns the names of a tool that need a translation and are not those of another tool."""
    return tuple(
        each.name for each in NAMES if each.tool == tool and not (each.needs or each.where)
    )


def sent_as(name: str, tool: str) -> bool:
    """Returns whether calls of a tool can be sent under another name, with certain arguments."""
    return any(each.tool == tool for each in _BY_NAME.get(folded_name(name), ()))


def translated(name: str, arguments: Mapping[str, Any]) -> tuple[str, Arguments] | None:
    """Returns the tool and the arguments that a call under a known name means, if it is one.

    Raises:
        InvalidArgumentsError: If the arguments ask for something that the tool does not do.
    """
    for known in _BY_NAME.get(folded_name(name), ()):
        if known.means(arguments):
            return known.tool, known.translate(arguments)
    return None


_BY_NAME: Mapping[str, list[KnownName]] = {
    folded: [each for each in NAMES if folded_name(each.name) == folded]
    for folded in {folded_name(each.name) for each in NAMES}
}
