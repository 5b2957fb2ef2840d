"""Converts click commands to plain functions whose parameters are options and whose result is text.

Click is never imported here: a caller that has a command has imported click.
"""

from __future__ import annotations

import enum
import functools
import inspect
import io
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from datetime import datetime
from keyword import iskeyword
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, TextIO, get_args, get_origin

from pydantic import AfterValidator, Field
from pydantic.json_schema import SkipJsonSchema

from tools.conversion.callables.annotations import python_signature
from tools.conversion.callables.callables import NOTHING, callable_signature
from tools.conversion.callables.constructors import OMITTED
from tools.core.errors import InvalidArgumentsError, ToolDefinitionError, ToolFailedError
from tools.core.spec import MARK

CAPTURE: ContextVar[TextIO | None] = ContextVar("capture", default=None)
"""The stream that captures this call's output, or None for the real stdout."""


class _Stdout:
    """Python's stdout, except in calls whose output is captured."""

    def __init__(self, own: Any) -> None:
        self._own = own

    def __getattr__(self, name: str) -> Any:
        return getattr(CAPTURE.get() or self._own, name)


@contextmanager
def captured() -> Iterator[Callable[[], str]]:
    """Captures what this call prints inside the block; yields a function that returns it so far."""
    if not isinstance(sys.stdout, _Stdout):  # never undone: other calls may be running
        sys.stdout = _Stdout(sys.stdout)
    kept = io.BytesIO()
    stream = io.TextIOWrapper(kept, encoding="utf-8", newline="\n", write_through=True)
    token = CAPTURE.set(stream)
    try:
        yield lambda: kept.getvalue().decode(errors="replace").rstrip("\n")
    finally:
        CAPTURE.reset(token)
        stream.detach()


def printing(function: Callable[..., Any], signature: inspect.Signature) -> Callable[..., str]:
    """Wraps a function to return what it prints."""

    def run(*args: Any, **kwargs: Any) -> str:
        with captured() as printed:
            function(*args, **kwargs)
            return printed()

    functools.update_wrapper(run, function)
    vars(run)["__signature__"] = signature.replace(return_annotation=str)
    return run


TYPES: Mapping[str, Any] = {
    "Bool": bool,
    "File": Annotated[str, Field(pattern="^([^-]|-.)")],  # `-` means stdin, not the caller's
    "Float": float,
    "FloatRange": float,
    "Int": int,
    "IntRange": int,
    "UUID": uuid.UUID,
}
"""Click's type names that map to JSON types; other types are parsed from text."""
UNSET = "Sentinel.UNSET"
"""Newer versions of click use this for a missing value until a command line is parsed."""


def is_command(value: Any) -> bool:
    """Returns whether the value is a click command or command group."""
    return any(
        each.__module__ == "click.core" and each.__name__ == "Command"
        for each in type(value).__mro__
    )


def plain_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function to call for a click command or a typer function.

    A typer function returns what it prints, unless it declares a return type.
    """
    if is_command(function):
        return as_function(function)
    if type(function).__module__.partition(".")[0] == "typer":
        raise ToolDefinitionError(f"{function!r} is typer's; convert the function itself.")
    if "typer" not in sys.modules or not inspect.isfunction(function):
        return function
    parameters = callable_signature(function).parameters.values()
    declared = [each.default for each in parameters]
    declared += [part for each in parameters for part in get_args(each.annotation)[1:]]
    return printed(function) if any(map(is_option, declared)) else function


def printed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a function to return the text it prints, unless it declares a return type."""
    read = callable_signature(function)
    has_result = not any(read.return_annotation is each for each in (None, NoneType, NOTHING))
    return function if has_result else printing(function, read)


def registered(values: Iterable[Any]) -> list[Any]:
    """Returns the command functions of the typer apps among some values."""
    apps = [each for each in values if type(each).__module__ == "typer.main"]
    return [each.callback for app in apps for each in app.registered_commands]


def leaves(command: Any, *above: Any) -> Iterator[Sequence[Any]]:
    """Yields each runnable command, preceded by its groups."""
    chain = (*above, command)
    if not hasattr(command, "list_commands"):
        yield chain
        return
    context = command.context_class(command)
    for name in command.list_commands(context):
        yield from leaves(command.get_command(context, name), *chain)


def as_function(*chain: Any) -> Callable[..., str]:
    """Returns a function that runs a command, which its groups precede in the chain.

    Click itself converts and checks the values, as if they came from a command line. The function
    returns what the command prints; if that is nothing, what it returns.
    """
    command = chain[-1]
    if hasattr(command, "list_commands"):
        raise ToolDefinitionError(
            f"{command.name} is a group of commands; convert each of {command.name}.commands, "
            "or serve the file, where each becomes a tool."
        )
    parameters: list[inspect.Parameter] = []
    places: dict[str, tuple[int, str]] = {}
    for place, part in enumerate(chain):
        for name, declared in _declarations(part).items():
            listed = f"{part.name}_{name}" if name in places else name
            listed = f"{listed}_" if iskeyword(listed) else listed.replace("-", "_")
            places[listed] = place, name
            parameters.append(_parameter(listed, declared))

    def run(**values: Any) -> str:
        given: list[dict[str, Any]] = [{} for _ in chain]
        for listed, value in values.items():
            place, name = places[listed]
            given[place][name] = value
        with captured() as text:
            returned = _run(chain, given, text)
            return text() or ("" if returned is None else str(returned))

    run.__signature__ = inspect.Signature(parameters, return_annotation=str)  # type: ignore[attr-defined]  # inspect reads it
    name = "_".join(part.name or "" for part in chain[1:] or chain)
    run.__name__ = run.__qualname__ = name.replace("-", "_")
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    run.__doc__ = inspect.cleandoc(command.help or "").partition("\f")[0].replace("\b\n", "")
    run.__module__ = getattr(command.callback, "__module__", run.__module__)
    options = getattr(command, MARK, getattr(command.callback, MARK, None))
    if options is not None:
        setattr(run, MARK, options)
    return run


def _run(chain: Sequence[Any], values: Sequence[dict[str, Any]], text: Callable[[], str]) -> Any:
    """Runs a command and turns its exit code and click's errors into tool errors."""
    try:
        return _invoke(chain, values)
    except SystemExit as error:
        code = error.code
    except Exception as error:
        kinds = {each.__name__ for each in type(error).__mro__}
        if "ClickException" in kinds:
            failed = InvalidArgumentsError if "UsageError" in kinds else ToolFailedError
            raise failed(error.format_message()) from error  # type: ignore[attr-defined]  # click's errors have it
        if type(error).__module__ != "click.exceptions":
            raise
        code = getattr(error, "exit_code", "an interactive prompt, which is not supported")
    if code:
        raise ToolFailedError(f"{text()}\nThe command ended with {code}.".strip())
    return None


def _invoke(chain: Sequence[Any], values: Sequence[dict[str, Any]]) -> Any:
    with ExitStack() as stack:
        context = None
        for place, command in enumerate(chain):
            context = command.context_class(
                command, parent=context, info_name=command.name, **command.context_settings
            )
            stack.enter_context(context)
            given = command.get_params(context)
            for each in sorted(given, key=lambda each: not each.is_eager):
                each.handle_parse_result(context, values[place], [])
            unset = [name for name, value in context.params.items() if repr(value) == UNSET]
            context.params |= dict.fromkeys(unset)
            if place < len(chain) - 1:
                context.invoked_subcommand = chain[place + 1].name
                if command.callback is not None:
                    context.invoke(command.callback, **context.params)
        return chain[-1].invoke(context)


def _declarations(command: Any) -> dict[str, list[Any]]:
    """Groups the declarations of each visible parameter by its name."""
    by_name: dict[str, list[Any]] = {}
    for each in command.params:
        if each.expose_value or getattr(each, "prompt", None):
            by_name.setdefault(each.name, []).append(each)
    return {
        name: declared
        for name, declared in by_name.items()
        if not all(getattr(each, "hidden", False) for each in declared)
    }


def _parameter(name: str, declared: Sequence[Any]) -> inspect.Parameter:
    """Builds one parameter; flags that share a name are its values."""
    first = declared[0]
    default = next((_default(each) for each in declared if _default(each) is not None), None)
    required = default is None and not first.envvar
    required = required and (first.required or bool(getattr(first, "prompt", None)))
    texts = [getattr(each, "help", None) for each in declared]
    forms = getattr(first.type, "formats", None)
    texts += [f"In one of the forms {', '.join(forms)}."] if forms else []
    extra: dict[str, Any] = {} if default is None else {"default": default}
    if getattr(first, "hide_input", False):
        extra |= {"writeOnly": True, "format": "password"}
    field = Field(
        description=" ".join(filter(None, texts)) or None,
        json_schema_extra=extra,
        deprecated=bool(getattr(first, "deprecated", False)),
    )
    hint: Any = Annotated[_type(declared), field]
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        annotation=hint,
        default=inspect.Parameter.empty if required else OMITTED,
    )


def _type(declared: Sequence[Any]) -> Any:
    first = declared[0]
    if getattr(first, "count", False):
        return Annotated[int, Field(ge=0)]
    info = first.type.to_info_dict()
    if getattr(first, "is_flag", False):
        values = tuple(each.flag_value for each in declared)
        if all(isinstance(value, str) for value in values):
            return Literal[values]
        return bool
    one = _of_click(info)
    if first.nargs > 1 and info["param_type"] != "Tuple":
        one = tuple[(one,) * first.nargs]  # type: ignore[misc]  # known only now
    return list[one] if first.nargs == -1 or first.multiple else one  # type: ignore[valid-type]  # the same


def _of_click(info: Mapping[str, Any]) -> Any:
    """Returns the Python type that click would parse from the command line."""
    kind = info["param_type"]
    if kind == "Choice":
        names = (each.name if isinstance(each, enum.Enum) else each for each in info["choices"])
        return Literal[tuple(names)]
    if kind == "Tuple":
        return tuple[tuple(map(_of_click, info["types"]))]  # type: ignore[misc]  # known only now
    plain = TYPES.get(kind, str)
    if info.get("clamp", True):
        return plain
    low, high = ("gt" if info["min_open"] else "ge"), ("lt" if info["max_open"] else "le")
    return Annotated[plain, Field(**{low: info["min"], high: info["max"]})]


def _default(parameter: Any) -> Any:
    """Returns a default in JSON form, or None if there is none or click computes it."""
    default = parameter.default
    if getattr(parameter, "is_flag", False) and isinstance(parameter.flag_value, str):
        return parameter.flag_value if default is True or default == parameter.flag_value else None
    if isinstance(default, tuple):
        default = list(default)
    return default if isinstance(default, bool | int | float | str | list) else None


def is_option(declared: Any) -> bool:
    """Returns whether the value is a typer option or argument."""
    return type(declared).__module__ == "typer.models" and hasattr(declared, "default_factory")


def with_option(name: str, annotation: Any, default: Any) -> tuple[Any, Any]:
    """Returns the type and default of a parameter, with its typer options merged in."""
    bare, *declared = get_args(annotation) if get_origin(annotation) is Annotated else [annotation]
    found = next(filter(is_option, [default, *declared]), None)
    if found is None:
        return annotation, default
    if default is found:
        default = found.default
    empty = inspect.Parameter.empty
    field: dict[str, Any] = {"description": found.help}
    if found.default_factory:
        field["default_factory"] = found.default_factory
    elif default is not ... and default is not empty:
        field["default"] = default
    if not found.clamp:
        field |= {"ge": found.min, "le": found.max}
    if getattr(found, "count", False):
        field["ge"] = 0
    if getattr(found, "hide_input", False):
        field["json_schema_extra"] = {"writeOnly": True, "format": "password"}
    kept = [each for each in declared if each is not found]
    checks = map(AfterValidator, _checks(name, found, bare))
    if found.parser or getattr(found, "click_type", None) or found.formats:
        bare = str
    hint: Any = Annotated[(bare, *checks, *kept, Field(**field))]
    if found.hidden and not {"default", "default_factory"}.isdisjoint(field):
        hint = Annotated[hint, SkipJsonSchema]
    return hint, empty


def _checks(name: str, declared: Any, kind: Any) -> list[Callable[[Any], Any]]:
    """Returns the conversions and checks that typer applies to a value, in order."""
    checks: list[Callable[[Any], Any]] = []
    if declared.parser is not None:
        checks.append(declared.parser)
    if getattr(declared, "click_type", None) is not None:
        checks.append(lambda value: declared.click_type.convert(value, None, None))
    if declared.formats:
        checks.append(lambda text: _time(text, declared.formats))
    if kind is Path:
        checks.append(lambda path: _path(path, declared))
    if declared.callback is not None:
        if len(python_signature(declared.callback).parameters) != 1:
            raise ToolDefinitionError(
                f"The parameter {name} has a callback that asks for typer's context; check the "
                "value in the function itself."
            )
        checks.append(declared.callback)
    return [_refusing(each) for each in checks]


def _refusing(check: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Wraps a check so that click's error about a bad value becomes a ValueError."""

    def checked(value: Any) -> Any:
        try:
            return check(value)
        except Exception as error:
            if hasattr(error, "format_message"):
                raise ValueError(getattr(error, "message", str(error))) from error
            raise

    return checked


def _time(text: str, formats: list[str]) -> datetime:
    for each in formats:
        try:
            return datetime.strptime(text, each)  # noqa: DTZ007  # as typer reads it
        except ValueError:
            continue
    raise ValueError(f"send it in one of the forms {', '.join(formats)}")


def _path(path: Path, declared: Any) -> Path:
    if declared.exists and not path.exists():
        raise ValueError("this path does not exist")
    if not declared.file_okay and path.is_file():
        raise ValueError("it is a file and must be a directory")
    if not declared.dir_okay and path.is_dir():
        raise ValueError("it is a directory and must be a file")
    return path.resolve() if declared.resolve_path else path
