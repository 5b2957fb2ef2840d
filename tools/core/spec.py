"""Defines tools: their specification and the `@tool` decorator."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, NamedTuple, TypeVar, overload

from pydantic import (
    AfterValidator,
    ConfigDict,
    PositiveFloat,
    TypeAdapter,
    ValidationError,
    with_config,
)
from typing_extensions import TypedDict, Unpack

from tools.conversion.schema_reading import bears_secret
from tools.core.errors import ToolDefinitionError
from tools.core.result import ToolResult
from tools.core.toolset import ToolOffer

__all__ = [
    "Alias",
    "Confirmation",
    "Effect",
    "Prepared",
    "Subject",
    "SubjectKind",
    "ToolOptions",
    "ToolScope",
    "ToolSpec",
    "checked_options",
    "marking",
    "settle",
    "tool",
]

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
OptionsT = TypeVar("OptionsT", bound=Mapping[str, Any])
MARK = "__tool_options__"
"""The attribute of a function, or of a module for all its functions, that holds the options."""

DEFAULT_TIMEOUT = 60.0
"""Default time limit of a call in seconds."""


class ToolScope(StrEnum):
    """Where a call is routed, which determines what it is granted."""

    SANDBOXED = "sandboxed"
    SYSTEM = "system"
    MCP = "mcp"
    CONTEXT = "context"


class Effect(StrEnum):
    """The effects that a call can have."""

    READ = "read"
    WRITE = "write"
    EXECUTE = "execute"
    EXTERNAL = "external"


class Confirmation(StrEnum):
    """Whether a user should approve a call first."""

    NONE = "none"
    RECOMMENDED = "recommended"
    REQUIRED = "required"


class SubjectKind(StrEnum):
    """The kinds of call subjects that policy rules can match."""

    COMMAND = "command"
    PATH = "path"
    URL = "url"


class FileAct(NamedTuple):
    """A call of a file tool that another call stands for.

    Attributes:
        tool: The file tool, whose rules apply.
        path: The path as given.
    """

    tool: str
    path: str


class Subject(NamedTuple):
    """The subject of a call, by which policy rules distinguish calls of a tool.

    Attributes:
        kind: How rules compare it.
        parameter: The parameter that holds it; a name that no argument has, if `read` computes it.
        secret: The parameter that names a secret of the settings, which only a rule that names it
            allows; empty for none.
        method: The method of every request of the tool; empty if its parameter `method` holds it.
        read: Computes it from validated arguments, if no argument holds it.
        acts: Returns what a call does to each of several files; each is judged by itself.
    """

    kind: SubjectKind
    parameter: str = "(subject)"
    secret: str = ""
    method: str = ""
    read: Callable[[Mapping[str, Any]], str] | None = None
    acts: Callable[[Mapping[str, Any]], Sequence[FileAct]] | None = None


class Prepared(NamedTuple):
    """A completed call of a tool whose arguments do not describe everything it does.

    Attributes:
        arguments: Raw arguments that do.
        shown: Text that approval questions show instead of the arguments.
    """

    arguments: Mapping[str, Any]
    shown: str


class Alias:
    """Other names of a parameter, in its `Annotated`: accepted, but not listed.

    Args:
        names: Names that callers may know from elsewhere.
        read: Computes the parameter's value from the values given under these names; by default
            that is the value.
    """

    def __init__(
        self, *names: str, read: Callable[[Mapping[str, Any]], object] | None = None
    ) -> None:
        self.names = names
        self._read = read

    def value(self, given: Mapping[str, Any]) -> object:
        """Returns the value of the parameter.

        Args:
            given: The values sent under some of the names.

        Raises:
            ValueError: If they conflict or are ambiguous.
            TypeError: The same.
        """
        if self._read is not None:
            return self._read(given)
        first, *others = given.values()
        if any(other != first for other in others):
            raise ValueError
        return first


def _as_given(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    return arguments


@dataclass(frozen=True, kw_only=True)
class ToolSpec(ToolOffer):
    """The complete specification of a tool, in addition to its ToolOffer.

    Attributes:
        input_schema: JSON Schema (2020-12) of the arguments, an object.
        output_schema: JSON Schema of the structured result, an object, or None.
        scope: Where a call is routed.
        idempotent: Whether repeating a call changes nothing more.
        capabilities: What it can do, as phrases for tool retrieval.
        details: The whole description, for describe_tool, if the listed one is shortened.
        code: The source of a tool that an agent wrote, for describe_tool.
        describe: Creates a description that depends on the other tools.
        customize: Adapts it to the sources, directories and secrets of the settings.
        subject: The subject of a call, for policy rules.
        confirm_if: The calls that need `confirmation`, as in a rule: `dry_run=false`; empty for
            all.
        explain: Returns what a user should know about a call in addition to its arguments.
        is_proxy: Whether it only makes another call, which is judged, recorded and audited itself.
        resumable: Whether a call keeps running while its client is asked, instead of being repeated
            with the answers.
        may_become_job: Whether a long call is answered with a job and continues in the background.
        in_cell: Whether all that it runs is in a code worker ("cell"), without files and network.
        listed: Its definition as listed by its own server.
        quarantine_reason: Why it may not be called until the user has reviewed it, or "".
        prepare: Completes a call before it is judged, given validated arguments and a
            RequestContext with the machine and with files that no rules restrict yet; None if calls
            are complete.
        check: Rejects a call that cannot succeed, before `confirmation` asks the user; takes
            validated arguments and a RequestContext with files and machine.
        canonical: Renames raw arguments to the schema's names; unreadable ones stay.
        validate: Checks and converts raw arguments; raises InvalidArgumentsError.
        invoke: Runs the tool with validated arguments and a RequestContext.
    """

    title: str
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None
    scope: ToolScope
    effects: frozenset[Effect]
    validate: Callable[[Mapping[str, Any]], dict[str, Any]]
    invoke: Callable[[dict[str, Any], Any], Awaitable[ToolResult]]
    destructive: bool = False
    idempotent: bool = False
    confirmation: Confirmation = Confirmation.NONE
    capabilities: tuple[str, ...] = ()
    timeout: float = DEFAULT_TIMEOUT
    details: str = ""
    code: str = ""
    describe: Callable[[Sequence[ToolOffer]], str] | None = None
    customize: Callable[..., ToolSpec] | None = None  # functions run without Collections
    subject: Subject | None = None
    confirm_if: str = ""
    explain: Callable[[Mapping[str, Any]], str] | None = None
    is_proxy: bool = False
    resumable: bool = False
    may_become_job: bool = False
    in_cell: bool = False
    listed: object | None = None
    quarantine_reason: str = ""
    prepare: Callable[[Mapping[str, Any], Any], Awaitable[Prepared]] | None = None
    check: Callable[[Mapping[str, Any], Any], Awaitable[None]] | None = None
    canonical: Callable[[Mapping[str, Any]], Mapping[str, Any]] = _as_given

    @property
    def read_only(self) -> bool:
        """Returns whether all its effects are reads."""
        return self.effects == {Effect.READ}

    @property
    def open_world(self) -> bool:
        """Returns whether a call reaches beyond this computer."""
        return Effect.EXTERNAL in self.effects

    @property
    def secret_names(self) -> tuple[str, ...]:
        """The names of the secrets that a call may use; names may be shown."""
        schema = self.input_schema.get("properties", {}).get(self.subject and self.subject.secret)
        return tuple(schema["enum"]) if schema and "enum" in schema else ()

    @cached_property
    def bears_secrets(self) -> bool:
        """Whether any argument may hold a secret that its schema marks."""
        return bears_secret(self.input_schema, self.input_schema)

    def function_calling(self) -> dict[str, Any]:
        """Returns the definition in the function-calling form of model APIs."""
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": dict(self.input_schema),
        }
        return {"type": "function", "function": function}


@with_config(ConfigDict(extra="forbid"))
class ToolOptions(TypedDict, total=False):
    """Options of a tool, as in ToolSpec; omitted options use the defaults there.

    Attributes:
        name: By default the function's name.
        hidden: Parameters that callers neither see nor set; each keeps its default.
        rename: Public names by parameter name. Other options that name an argument, such as
            `subject`, use the public name.
        ignored: Arguments that callers may send without effect, such as a comment.
    """

    name: str
    description: str
    scope: ToolScope
    effects: Annotated[AbstractSet[Effect], AfterValidator(frozenset)]
    title: str
    destructive: bool
    idempotent: bool
    confirmation: Confirmation
    tags: tuple[str, ...]
    capabilities: tuple[str, ...]
    aliases: tuple[str, ...]
    aliases_elsewhere: tuple[str, ...]
    timeout: PositiveFloat
    describe: Callable[..., str]
    customize: Callable[..., Any]
    subject: Subject
    confirm_if: str
    is_proxy: bool
    prepare: Callable[..., Any]
    check: Callable[..., Any]
    resumable: bool
    may_become_job: bool
    in_cell: bool
    hidden: AbstractSet[str]
    rename: Mapping[str, str]
    ignored: tuple[str, ...]


OPTIONS = TypeAdapter(ToolOptions)
UNKNOWN = ToolOptions(effects=frozenset({Effect.EXECUTE, Effect.EXTERNAL}), destructive=True)
"""The effects assumed of a function that does not declare any."""


@overload
def tool(function: FunctionT, /) -> FunctionT: ...
@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[FunctionT], FunctionT]: ...
def tool(function: Any = None, /, **options: Any) -> Any:
    """Marks a function as a tool, which the registry finds and converts.

    Options may also be plain strings, lists and sets.

    Raises:
        ToolDefinitionError: If an option is unknown or wrong.
    """
    checked = checked_options(OPTIONS, options, "@tool")

    def mark(marked: FunctionT) -> FunctionT:
        setattr(marked, MARK, checked)
        return marked

    return marking("@tool", mark, function)


def marking(owner: str, mark: Callable[[Any], Any], function: object) -> Any:  # noqa: ANN401  # the function, or what marks one
    """Applies a decorator used without parentheses, or returns it for later use."""
    if function is None:
        return mark
    if not callable(function):
        raise ToolDefinitionError(
            f"{owner}({function!r}) does not name an option; write {owner}(name=…)."
        )
    return mark(function)


def settle(owner: str, *layers: Mapping[str, Any]) -> dict[str, Any]:
    """Merges layers of options, later ones first, and adds a scope and effects.

    Without declared effects, the worst are assumed, as MCP requires (schema 2026-07-28,
    ToolAnnotations).
    """
    given = {key: value for layer in layers for key, value in layer.items()}
    merged = checked_options(OPTIONS, given, owner)
    supposed = {} if "effects" in merged else UNKNOWN
    return {"scope": ToolScope.SANDBOXED, **supposed, **merged}


def checked_options(
    kind: TypeAdapter[OptionsT], options: Mapping[str, Any], owner: str
) -> OptionsT:
    """Validates options of one kind against their TypedDict."""
    try:
        return kind.validate_python(dict(options))
    except ValidationError as error:
        known = ", ".join(kind.core_schema["fields"])
        wrong = "; ".join(
            f"{'.'.join(map(str, each['loc']))} = {each['input']!r}: "
            + ("unknown option" if each["type"] == "extra_forbidden" else each["msg"])
            for each in error.errors(include_url=False)
        )
        raise ToolDefinitionError(
            f"The options of {owner} are wrong ({wrong}); known are {known}."
        ) from None
