"""Builds a tool's argument schema and validates what callers send."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails, from_json, to_json

from tools.conversion.arguments.descriptions import describe_schema, show
from tools.conversion.arguments.validation_errors import (
    describe_errors,
    is_of_types,
    nearest,
    synonym,
    unknown_name,
)
from tools.conversion.arguments.validator import compiled
from tools.conversion.callables.callables import NOTHING
from tools.conversion.callables.signature import Signature
from tools.conversion.schema_generator import tidy
from tools.conversion.schema_reading import Schema, bears_secret, branches, child, types
from tools.core.errors import InvalidArgumentsError, ToolDefinitionError

REPORTED = 5
"""Maximum unknown names listed in an error; a caller can send thousands."""

PLAIN: Any = {"inf_nan_mode": "constants"}
"""Serialization options: NaN is invalid JSON, but some senders write it for floats."""

STRUCTURES = {"array", "object"}
ENDLESS = {"inf", "infinity", "nan"}


class Arguments:
    """Validates the arguments that a caller sends to one tool; `schema` is their JSON Schema.

    Values that match the schema pass unchanged. Other values are coerced where they can mean only
    one thing. A string becomes the number, boolean, list or object that the schema expects. Dates
    and durations may be numbers of seconds, and 5.0 may be 5. Null becomes the default where the
    type does not allow it; the schema does not advertise a null default, because omitting the
    argument means the same.
    """

    def __init__(
        self,
        tool: str,
        signature: Signature,
        texts: Mapping[str, str],
        *,
        ignored: Collection[str] = (),
    ) -> None:
        """Builds the schema and the validator.

        `texts` describes the parameters that do not describe themselves. A parameter whose type
        JSON cannot express keeps its default. Arguments in `ignored` are accepted and have no
        effect.
        """
        self._tool = tool
        self._open = signature.extra is not NOTHING
        self._reserved = signature.reserved
        fields, (self._validator, self._full, self._is_plain) = compiled(tool, signature)
        self._names = [each.alias for each in fields]
        self._ignored = frozenset(ignored)
        self._aliases = [(each.alias, alias) for each in fields for alias in each.aliases]
        self._unlisted = {name: to for to, alias in self._aliases for name in alias.names}
        self._check_aliases()
        self.schema = _arguments_schema(self._full, is_open=self._open)
        properties = self.schema["properties"]
        for each in fields:
            if each.name in texts:
                properties[each.alias].setdefault("description", texts[each.name])
            if each.field is not None and each.field.deprecated:
                properties[each.alias]["deprecated"] = True
        for alias in self._unfit_defaults():
            del properties[alias]["default"]

    def validate(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Checks and converts the decoded JSON that a caller sent.

        Returns every argument by its public name, defaults included, and the extra names that
        `**kwargs` accepts.
        """
        raw = self.canonical(raw)
        try:
            if self._reserved.isdisjoint(raw):
                return self._read(raw)
        except (RecursionError, TypeError, ValueError):
            pass
        return self._validate_leniently(raw)

    def canonical(self, raw: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns the arguments under their schema names, without the ignored ones.

        An alias that conflicts with its argument, or cannot be parsed, keeps the name it was sent
        under.
        """
        if not isinstance(raw, Mapping):
            return raw
        if self._ignored.isdisjoint(raw) and self._unlisted.keys().isdisjoint(raw):
            return raw
        taken = self._ignored | self._unlisted.keys()
        named = {name: value for name, value in raw.items() if name not in taken}
        for name, alias in self._aliases:
            given = {each: raw[each] for each in alias.names if raw.get(each) is not None}
            if not given:
                continue
            try:
                value = alias.value(given)
            except (TypeError, ValueError):
                named |= given
            else:
                named |= {name: value} if named.get(name) in (None, value) else given
        return named

    def refusal(self, error: ValidationError) -> InvalidArgumentsError:
        """Returns the error for a pydantic failure that concerns the arguments together."""
        return self._error(describe_errors(error.errors(include_url=False), self.schema))

    def _read(self, raw: object) -> dict[str, Any]:
        """Reads values that match the schema exactly; strict JSON rejects numbers as strings."""
        values: dict[str, Any]
        if self._is_plain:
            values = self._validator.validate_python(raw, strict=True)
        else:
            values = self._validator.validate_json(to_json(raw, **PLAIN), strict=True)
        return values

    def _read_leniently(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        values: dict[str, Any]
        try:
            values = self._validator.validate_json(to_json(raw, **PLAIN))
        except ValueError as error:
            if isinstance(error, ValidationError) and error.errors()[0]["loc"]:
                raise
            # An unpaired surrogate, an infinite number, or nesting too deep for the JSON parser.
            values = self._validator.validate_python(raw)
        return values

    def _validate_leniently(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        if not isinstance(raw, Mapping):
            shown = "not an object" if bears_secret(self.schema, self.schema) else show(raw)
            raise self._error([f"they are {shown}; send an object with the arguments by name."])
        strangers = [name for name in raw if not self._knows(name)]
        meant = self._meant(strangers[:REPORTED], raw)
        problems = [self._unknown(name, raw, meant.get(name)) for name in strangers[:REPORTED]]
        if len(strangers) > REPORTED:
            problems.append(f"{len(strangers) - REPORTED} more names are unknown.")
        values: dict[str, Any] = {}
        try:
            order = [*self._names, *raw]
            known = {name: raw[name] for name in order if name in raw and self._knows(name)}
            sent = _coerced(known, self._full, self._full)
            problems += describe_errors(_false_numbers(sent, self._full, self._full), self.schema)
            values = self._read_leniently(sent)
        except ValidationError as error:
            problems += describe_errors(error.errors(include_url=False), self.schema)
        except RecursionError:
            problems.append("they are nested too deeply; send fewer levels.")
        if problems:
            raise self._error(list(dict.fromkeys(problems)), list(meant.values()))
        return values

    def _meant(self, strangers: Sequence[str], raw: Mapping[str, Any]) -> dict[str, str]:
        """Maps each unknown name to the argument it probably means.

        Candidates are similar names and the only required argument still missing. An argument whose
        type accepts the value is preferred.
        """
        near = {
            name: like
            for name in strangers
            if (like := nearest(name, self._names) or synonym(name, self._names))
        }
        meant = {name: like for name, like in near.items() if self._takes(like, raw[name])}
        lacking = set(self.schema.get("required", ())) - raw.keys() - set(meant.values())
        for name in strangers:
            fit = [each for each in sorted(lacking) if self._takes(each, raw[name])]
            if name not in meant and len(fit) == 1:
                meant[name] = fit[0]
                lacking.remove(fit[0])
        return {**near, **meant}

    def _takes(self, name: str, value: object) -> bool:
        kinds = types(self.schema["properties"][name], self.schema)
        return not kinds or is_of_types(value, kinds)

    def _unknown(self, name: str, raw: Mapping[str, Any], meant: str | None) -> str:
        other = self._unlisted.get(name)
        if other is None:
            return unknown_name("", name, self._names, meant)
        if other in raw:
            return f"`{name}` means `{other}`, which has a different value; send only one of them."
        schema = self.schema["properties"][other]
        wanted = describe_schema(schema, self.schema)
        shown = "does not fit" if bears_secret(schema, self.schema) else f"is {show(raw[name])}"
        return f"`{name}` {shown}, which gives no `{other}`; send `{other}` instead: {wanted}."

    def _check_aliases(self) -> None:
        names = [*self._names, *self._ignored, *(n for _, a in self._aliases for n in a.names)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ToolDefinitionError(
                f"The arguments {', '.join(twice)} of {self._tool} are ambiguous; remove one Alias."
            )

    def _knows(self, name: str) -> bool:
        return name in self._names or (self._open and name not in self._reserved)

    def _unfit_defaults(self) -> list[str]:
        properties = self.schema["properties"]
        shown = {name: part["default"] for name, part in properties.items() if "default" in part}
        unfit = set()
        for name, value in shown.items():
            try:
                to_json(value)
            except ValueError:
                unfit.add(name)
        try:
            self._read({name: value for name, value in shown.items() if name not in unfit})
        except ValidationError as error:
            unfit |= {str(each["loc"][0]) for each in error.errors() if each["loc"]}
        return [name for name in shown if name in unfit]

    def _error(
        self, problems: Sequence[str], suggestions: Sequence[str] = ()
    ) -> InvalidArgumentsError:
        lines = "\n".join(f"- {problem}" for problem in problems)
        return InvalidArgumentsError(
            f"The arguments of {self._tool} are wrong:\n{lines}",
            suggestions=suggestions,
            next_actions=[f"Correct what is listed and call {self._tool} again."],
        )


def _arguments_schema(generated: Mapping[str, Any], *, is_open: bool) -> dict[str, Any]:
    tidied = tidy(generated, nulls=False)
    schema = {"type": "object", "properties": tidied["properties"]}
    if tidied["required"]:
        schema["required"] = tidied["required"]
    schema["additionalProperties"] = tidied.get("additionalProperties", is_open)
    if "$defs" in tidied:
        schema["$defs"] = tidied["$defs"]
    return schema


def _coerced(value: object, schema: Schema, root: Schema) -> Any:
    """Converts a value to what its schema expects, where it can mean nothing else.

    Models send a list as JSON text, null for what they omit, and 5.0 for 5.
    """
    if isinstance(value, str):
        kinds = types(schema, root)
        if "string" in kinds or kinds.isdisjoint(STRUCTURES):
            return value
        decoded = _decoded(value)
        return value if decoded is None else _coerced(decoded, schema, root)
    if isinstance(value, float):
        kinds = types(schema, root)
        whole = "integer" in kinds and "number" not in kinds and value.is_integer()
        return int(value) if whole else value
    if isinstance(value, list):
        return [
            item if (part := child(schema, place, root)) is None else _coerced(item, part, root)
            for place, item in enumerate(value)
        ]
    if isinstance(value, dict):
        return dict(_coerced_items(value, schema, root))
    return value


def _false_numbers(
    value: object, schema: Schema, root: Schema, *place: int | str
) -> Iterator[ErrorDetails]:
    """Yields errors for values that only pydantic accepts as numbers: true, "NaN", "inf"."""
    if isinstance(value, bool | str):
        kinds = types(schema, root)
        own = "string" if isinstance(value, str) else "boolean"
        if own in kinds or kinds.isdisjoint({"integer", "number"}):
            return
        if isinstance(value, bool):
            yield {"type": "bool_for_number", "loc": place, "msg": "", "input": value}
        elif value.strip("+- ").lower() in ENDLESS:
            message = "Input should be a finite number"
            yield {"type": "finite_number", "loc": place, "msg": message, "input": value}
    elif isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            inner = child(schema, key, root) if isinstance(part, bool | dict | list | str) else None
            if inner is not None:
                yield from _false_numbers(part, inner, root, *place, key)


def _coerced_items(
    value: Mapping[str, Any], schema: Schema, root: Schema
) -> Iterator[tuple[str, Any]]:
    left_out = {
        name
        for branch in branches(schema, root)
        for name in branch.get("properties", {}).keys() - branch.get("required", ())
    }
    for name, item in value.items():
        part = child(schema, name, root)
        if part is None:
            yield name, item
        elif item is not None:
            yield name, _coerced(item, part, root)
        elif name not in left_out or not (kinds := types(part, root)) or "null" in kinds:
            yield name, None


def _decoded(text: str) -> object:
    try:
        decoded = from_json(text)
    except (TypeError, ValueError):  # TypeError: half of a surrogate pair
        return None
    return decoded if isinstance(decoded, list | dict) else None
