"""What a tool is: its specification, its result, and the mark that makes a function one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, NamedTuple, Protocol, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PositiveFloat,
    TypeAdapter,
    ValidationError,
    with_config,
)
from typing_extensions import TypedDict, Unpack

from tools.core.context import RequestContext
from tools.core.errors import ErrorType, ToolDefinitionError, ToolError, as_typed
from tools.core.media import Media

__all__ = [
    "Confirmation",
    "Effect",
    "Subject",
    "SubjectKind",
    "ToolFailure",
    "ToolOffer",
    "ToolOptions",
    "ToolResult",
    "ToolScope",
    "ToolSpec",
    "settle",
    "tool",
]

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
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
    """The parameter that says what a call is about, by which rules tell calls of a tool apart.

    Attributes:
        kind: How rules compare it.
        parameter: Its name.
    """

    kind: SubjectKind
    parameter: str


class ToolFailure(BaseModel):
    """What a failed call answers.

    Attributes:
        error_type: One of the closed list.
        message: What was wrong, with which value.
        suggestions: Values or names that would have worked.
        next_actions: What to do now.
    """

    error_type: ErrorType
    message: str
    suggestions: list[str] = Field(default_factory=list)
    next_actions: list[str] = Field(default_factory=list)

    @classmethod
    def of(cls, error: ToolError, *, command: str = "toolcrib") -> ToolFailure:
        """The failure that an exception of the tree stands for.

        Args:
            error: The exception.
            command: What stands for `toolcrib` in the commands among its next actions.
        """
        return cls(
            error_type=error.error_type,
            message=error.message,
            suggestions=list(error.suggestions),
            next_actions=[as_typed(action, command) for action in error.next_actions],
        )

    def to_text(self) -> str:
        """The failure as lines for the model."""
        lines = [f"{self.error_type}: {self.message}"]
        if self.suggestions:
            lines.append("Did you mean: " + ", ".join(self.suggestions))
        lines.extend(f"Next: {action}" for action in self.next_actions)
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call answers.

    Attributes:
        structured: JSON object that validates against the output schema (on success), or a
            ToolFailure as JSON (on failure).
        text: The same for the model, compact.
        is_error: Whether the call failed.
        media: Images and sounds beside the text, in the order in which the result has them.
        verbatim: What another server answered, to be handed on as it is.
        added: What we say beside it.
    """

    structured: dict[str, Any]
    text: str
    is_error: bool = False
    media: tuple[Media, ...] = ()
    verbatim: object | None = None
    added: str = ""

    @classmethod
    def failure(cls, error: ToolError, *, command: str = "toolcrib") -> ToolResult:
        """The result that an exception of the tree stands for; the arguments of ToolFailure.of."""
        failure = ToolFailure.of(error, command=command)
        return cls(failure.model_dump(mode="json"), failure.to_text(), is_error=True)


class ToolOffer(Protocol):
    """What tells which tools there are; a ToolSpec is one.

    Attributes:
        name: Stable identifier.
        aliases: Other names that reach it.
        bare: What it is called at its own server; empty where it is ours.
        tags: Groups it belongs to.
        source: Where it comes from, as in ToolSpec.
    """

    @property
    def name(self) -> str: ...  # noqa: D102  # told above
    @property
    def aliases(self) -> tuple[str, ...]: ...  # noqa: D102  # the same
    @property
    def bare(self) -> str: ...  # noqa: D102  # the same
    @property
    def tags(self) -> tuple[str, ...]: ...  # noqa: D102  # the same
    @property
    def source(self) -> str: ...  # noqa: D102  # the same


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """Everything that is known of a tool.

    Attributes:
        name: Stable identifier, `[a-z0-9_]{1,64}`.
        title: Name for people.
        description: What it does, for the model.
        input_schema: JSON Schema (2020-12) of the arguments, an object.
        output_schema: JSON Schema of the structured result, an object, or None.
        scope: Where a call is routed.
        effects: What a call does to the world.
        destructive: Whether a call may remove or overwrite what exists.
        idempotent: Whether repeating a call changes nothing more.
        confirmation: Whether a person should agree first.
        tags: Groups it belongs to.
        capabilities: What it can do, as phrases for tool retrieval.
        aliases: Other names that reach it; accepted, not listed.
        source: "builtin", "function:FILE", "created" or "upstream:NAME".
        timeout: Seconds that a call may take.
        details: The whole description, for describe_tool, where the listed one is cut short.
        describe: Makes the description of a tool whose use depends on which others there are.
        tailor: Fits a tool to the sources and directories that the settings name.
        subject: What a call is about, for the rules of the policy.
        confirm_if: Which calls `confirmation` means, as in a rule: `dry_run=false`; empty for all.
        passes_on: Whether it merely makes a call for its caller, which is judged, recorded and
            audited itself.
        bare: What it is called at its own server; reaches it where no other tool is called so.
        listed: Its definition as its own server lists it.
        barred: Why it may not be called until a person has looked at it; empty where it may.
        validate: Checks and converts raw arguments; raises InvalidArgumentsError.
        invoke: Runs the tool with arguments that `validate` returned.
    """

    name: str
    title: str
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None
    scope: ToolScope
    effects: frozenset[Effect]
    validate: Callable[[Mapping[str, Any]], dict[str, Any]]
    invoke: Callable[[dict[str, Any], RequestContext], Awaitable[ToolResult]]
    destructive: bool = False
    idempotent: bool = False
    confirmation: Confirmation = Confirmation.NONE
    tags: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    source: str = "builtin"
    timeout: float = DEFAULT_TIMEOUT
    details: str = ""
    describe: Callable[[Sequence[ToolOffer]], str] | None = None
    tailor: Callable[..., ToolSpec] | None = None  # Holdings is not loaded where functions run
    subject: Subject | None = None
    confirm_if: str = ""
    passes_on: bool = False
    bare: str = ""
    listed: object | None = None
    barred: str = ""

    @property
    def server(self) -> str:
        """The other server that it is a tool of; empty where it is ours."""
        kind, _, name = self.source.partition(":")
        return name if kind == "upstream" else ""

    @property
    def read_only(self) -> bool:
        """Whether a call only reads."""
        return self.effects == {Effect.READ}

    @property
    def open_world(self) -> bool:
        """Whether a call reaches beyond this machine."""
        return Effect.EXTERNAL in self.effects

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
    """Options of a tool; each that is left out has the default of ToolSpec.

    Attributes:
        scope: Where a call is routed.
        effects: What a call does to the world.
        title: Name for people; by default the function's name in words.
        destructive: Whether a call may remove or overwrite what exists.
        idempotent: Whether repeating a call changes nothing more.
        confirmation: Whether a person should agree first.
        tags: Groups it belongs to.
        capabilities: What it can do, as phrases for tool retrieval.
        aliases: Other names that reach it.
        timeout: Seconds that a call may take.
        describe: Makes the description from all tools, where it depends on them.
        tailor: Fits the tool to the sources and directories that the settings name.
        subject: What a call is about, for the rules of the policy.
        confirm_if: Which calls `confirmation` means; all where it is left out.
        passes_on: Whether it merely makes a call for its caller.
        hidden: Parameters that callers neither see nor give; each keeps its default.
    """

    scope: ToolScope
    effects: Annotated[AbstractSet[Effect], AfterValidator(frozenset)]
    title: str
    destructive: bool
    idempotent: bool
    confirmation: Confirmation
    tags: tuple[str, ...]
    capabilities: tuple[str, ...]
    aliases: tuple[str, ...]
    timeout: PositiveFloat
    describe: Callable[..., str]
    tailor: Callable[..., Any]
    subject: Subject
    confirm_if: str
    passes_on: bool
    hidden: AbstractSet[str]


OPTIONS = TypeAdapter(ToolOptions)
UNKNOWN = ToolOptions(effects=frozenset({Effect.EXECUTE, Effect.EXTERNAL}), destructive=True)
"""What has to be supposed of a function that says nothing of its effects."""


def tool(**options: Unpack[ToolOptions]) -> Callable[[FunctionT], FunctionT]:
    """Marks a function as a tool; the registry finds it and converts it.

    Args:
        **options: As in ToolOptions; plain strings, lists and sets do as well.

    Returns:
        A decorator that returns the function unchanged, marked with its options.

    Raises:
        ToolDefinitionError: If an option is unknown or wrong.
    """
    checked = _checked(options, "@tool")

    def mark(function: FunctionT) -> FunctionT:
        setattr(function, MARK, checked)
        return function

    return mark


def settle(owner: str, *layers: Mapping[str, Any]) -> dict[str, Any]:
    """One set of options from several, of which the later ones win.

    Args:
        owner: Whose options they are, for messages.
        *layers: Options from the most general to the most particular.

    Returns:
        ToolOptions with a scope and effects. Of a function of which nobody says what it does, the
        worst is supposed, as MCP wants it (schema 2026-07-28, ToolAnnotations).

    Raises:
        ToolDefinitionError: If an option is unknown or wrong.
    """
    merged = _checked({key: value for layer in layers for key, value in layer.items()}, owner)
    supposed = {} if "effects" in merged else UNKNOWN
    return {"scope": ToolScope.SANDBOXED, **supposed, **merged}


def _checked(options: Mapping[str, Any], owner: str) -> ToolOptions:
    try:
        return OPTIONS.validate_python(dict(options))
    except ValidationError as error:
        known = ", ".join(ToolOptions.__annotations__)
        wrong = "; ".join(
            f"{'.'.join(map(str, each['loc']))} = {each['input']!r}: {each['msg']}"
            for each in error.errors(include_url=False)
        )
        raise ToolDefinitionError(
            f"The options of {owner} are wrong ({wrong}); known are {known}."
        ) from None
