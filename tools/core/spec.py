"""What a tool is: its specification, and the mark that makes a function one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
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
"""The attribute of a function, or of a module for all its functions, that holds its options."""

DEFAULT_TIMEOUT = 60.0
"""Seconds a call may take when its tool says nothing else."""


class ToolScope(StrEnum):
    """Where a call is routed, and so what it is given."""

    SANDBOXED = "sandboxed"
    SYSTEM = "system"
    MCP = "mcp"
    CONTEXT = "context"


class Effect(StrEnum):
    """What a call does to the world."""

    READ = "read"
    WRITE = "write"
    EXECUTE = "execute"
    EXTERNAL = "external"


class Confirmation(StrEnum):
    """Whether a person should agree to a call first."""

    NONE = "none"
    RECOMMENDED = "recommended"
    REQUIRED = "required"


class SubjectKind(StrEnum):
    """What a rule of the policy can say of a call besides its tool."""

    COMMAND = "command"
    PATH = "path"
    URL = "url"


class Subject(NamedTuple):
    """What a call is about, by which rules tell calls of a tool apart.

    Attributes:
        kind: How rules compare it.
        parameter: The parameter that says it; where `read` does, a name that no argument has.
        secret: The parameter that names a secret of the settings, which only a rule that names it
            allows; empty for none.
        method: The method of every request of the tool; empty where its parameter `method` says it.
        read: Makes it of arguments that `ToolSpec.validate` returned, where none of them says it.
    """

    kind: SubjectKind
    parameter: str = "(subject)"
    secret: str = ""
    method: str = ""
    read: Callable[[Mapping[str, Any]], str] | None = None


class Prepared(NamedTuple):
    """A call as it is judged, of a tool whose arguments do not say all that it does.

    Attributes:
        arguments: Raw arguments that do.
        shown: What a person who is asked about it sees of it, in the place of the arguments.
    """

    arguments: Mapping[str, Any]
    shown: str


class Alias:
    """Other names of a parameter, in its `Annotated`: they are understood, and listed nowhere.

    Args:
        names: What callers may call it that learned it elsewhere.
        read: Makes its value of what was given under them, by name; without it that is the value.
    """

    def __init__(
        self, *names: str, read: Callable[[Mapping[str, Any]], object] | None = None
    ) -> None:
        self.names = names
        self._read = read

    def value(self, given: Mapping[str, Any]) -> object:
        """The value of the parameter.

        Args:
            given: Some of the names, with what was given under each.

        Raises:
            ValueError: If they contradict each other, or mean nothing certain.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec(ToolOffer):
    """Everything that is known of a tool, besides what a ToolOffer tells.

    Attributes:
        title: Name for people.
        description: What it does, for the model.
        input_schema: JSON Schema (2020-12) of the arguments, an object.
        output_schema: JSON Schema of the structured result, an object, or None.
        scope: Where a call is routed.
        effects: What a call does to the world.
        destructive: Whether a call may remove or overwrite what exists.
        idempotent: Whether repeating a call changes nothing more.
        confirmation: Whether a person should agree first.
        capabilities: What it can do, as phrases for tool retrieval.
        timeout: Seconds that a call may take.
        details: The whole description, for describe_tool, where the listed one is cut short.
        code: The source of a tool that an agent wrote, for describe_tool.
        describe: Makes the description of a tool whose use depends on which others there are.
        customize: Fits a tool to the sources, directories and secrets that the settings name.
        subject: What a call is about, for the rules of the policy.
        confirm_if: Which calls `confirmation` means, as in a rule: `dry_run=false`; empty for all.
        explain: Says what a person should know who is asked about a call, besides its arguments.
        passes_on: Whether it merely makes a call for its caller, which is judged, recorded and
            audited itself.
        once: Whether a call goes on while its client is asked, rather than being run again with the
            answers.
        becomes_job: Whether a call that takes long is answered with a job, and goes on.
        in_cell: Whether all that it runs is in a cell, which reaches no files and no network.
        listed: Its definition as its own server lists it.
        barred: Why it may not be called until a person has looked at it; empty where it may.
        prepare: Completes a call before it is judged, of arguments that `validate` returned and a
            RequestContext with files, to which no rules apply yet, and machine; None where nothing
            is to be completed.
        check: Refuses a call that could not succeed, before `confirmation` has a person asked; of
            arguments that `validate` returned and a RequestContext with files and machine.
        canonical: Gives raw arguments the names that the schema has; what it cannot read it leaves.
        validate: Checks and converts raw arguments; raises InvalidArgumentsError.
        invoke: Runs the tool with arguments that `validate` returned, and a RequestContext.
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
    passes_on: bool = False
    once: bool = False
    becomes_job: bool = False
    in_cell: bool = False
    listed: object | None = None
    barred: str = ""
    prepare: Callable[[Mapping[str, Any], Any], Awaitable[Prepared]] | None = None
    check: Callable[[Mapping[str, Any], Any], Awaitable[None]] | None = None
    canonical: Callable[[Mapping[str, Any]], Mapping[str, Any]] = _as_given

    @property
    def read_only(self) -> bool:
        """Whether a call only reads."""
        return self.effects == {Effect.READ}

    @property
    def open_world(self) -> bool:
        """Whether a call reaches beyond this machine."""
        return Effect.EXTERNAL in self.effects

    @property
    def secret_names(self) -> tuple[str, ...]:
        """The secrets that a call may name: their names may be shown."""
        schema = self.input_schema.get("properties", {}).get(self.subject and self.subject.secret)
        return tuple(schema["enum"]) if schema and "enum" in schema else ()

    def function_calling(self) -> dict[str, Any]:
        """The definition in the function-calling form that model APIs take."""
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": dict(self.input_schema),
        }
        return {"type": "function", "function": function}


@with_config(ConfigDict(extra="forbid"))
class ToolOptions(TypedDict, total=False):
    """Options of a tool, as in ToolSpec; each that is left out has the default there.

    Attributes:
        name: By default the function's.
        description: Text for the model; by default the docstring's.
        title: Name for people; by default the name in words.
        hidden: Parameters that callers neither see nor give; each keeps its default.
        rename: What callers know parameters as, by the function's own names. Whatever else names an
            argument, such as `subject`, names it as callers do.
        ignored: Arguments that callers may give though they change nothing, such as a comment.
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
    known_as: tuple[str, ...]
    timeout: PositiveFloat
    describe: Callable[..., str]
    customize: Callable[..., Any]
    subject: Subject
    confirm_if: str
    passes_on: bool
    prepare: Callable[..., Any]
    check: Callable[..., Any]
    once: bool
    becomes_job: bool
    in_cell: bool
    hidden: AbstractSet[str]
    rename: Mapping[str, str]
    ignored: tuple[str, ...]


OPTIONS = TypeAdapter(ToolOptions)
UNKNOWN = ToolOptions(effects=frozenset({Effect.EXECUTE, Effect.EXTERNAL}), destructive=True)
"""What has to be supposed of a function that says nothing of its effects."""


@overload
def tool(function: FunctionT, /) -> FunctionT: ...
@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[FunctionT], FunctionT]: ...
def tool(function: Any = None, /, **options: Any) -> Any:
    """Marks a function as a tool; the registry finds it and converts it.

    Plain strings, lists and sets do as well for the options.

    Raises:
        ToolDefinitionError: If an option is unknown or wrong.
    """
    checked = checked_options(OPTIONS, options, "@tool")

    def mark(marked: FunctionT) -> FunctionT:
        setattr(marked, MARK, checked)
        return marked

    return marking("@tool", mark, function)


def marking(owner: str, mark: Callable[[Any], Any], function: object) -> Any:  # noqa: ANN401  # the function, or what marks one
    """Returns what a decorator does: with parentheses it marks later, without them at once.

    Raises:
        ToolDefinitionError: If it was given something else than a function.
    """
    if function is None:
        return mark
    if not callable(function):
        raise ToolDefinitionError(
            f"{owner}({function!r}) does not say which option that is; write {owner}(name=…)."
        )
    return mark(function)


def settle(owner: str, *layers: Mapping[str, Any]) -> dict[str, Any]:
    """Returns one set of options, with a scope and effects, from several of which later ones win.

    Of a function of which nobody says what it does, the worst is supposed, as MCP wants it (schema
    2026-07-28, ToolAnnotations).

    Raises:
        ToolDefinitionError: If an option of the owner is unknown or wrong.
    """
    given = {key: value for layer in layers for key, value in layer.items()}
    merged = checked_options(OPTIONS, given, owner)
    supposed = {} if "effects" in merged else UNKNOWN
    return {"scope": ToolScope.SANDBOXED, **supposed, **merged}


def checked_options(
    kind: TypeAdapter[OptionsT], options: Mapping[str, Any], owner: str
) -> OptionsT:
    """Returns options of one kind, as their TypedDict has them.

    Raises:
        ToolDefinitionError: If one is unknown or wrong.
    """
    try:
        return kind.validate_python(dict(options))
    except ValidationError as error:
        known = ", ".join(kind.core_schema["fields"])
        wrong = "; ".join(
            f"{'.'.join(map(str, each['loc']))} = {each['input']!r}: "
            + ("there is no such option" if each["type"] == "extra_forbidden" else each["msg"])
            for each in error.errors(include_url=False)
        )
        raise ToolDefinitionError(
            f"The options of {owner} are wrong ({wrong}); known are {known}."
        ) from None
