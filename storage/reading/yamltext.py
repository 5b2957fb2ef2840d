"""Reads YAML with JSON's types: no dates, and only true and false as booleans."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import yaml  # type: ignore[import-untyped]  # PyYAML has no types

_NUMBER = r"[-+]?(?:0|[1-9][0-9]*)"


def read_yaml(text: str, *, plain: int = 0, unique: bool = False) -> object:
    """Parses a YAML text; raises ValueError if it is not YAML or exceeds the limits.

    `plain` limits the nesting and forbids tags, anchors and aliases, which could expand a few lines
    to billions; 0 allows everything that is safe. Of duplicate keys the last wins, unless each must
    be `unique`.
    """
    import yaml

    try:
        if plain:
            _check_plain(text, plain)
        return yaml.load(text, Loader=_loader(unique=unique))  # noqa: S506  # a safe loader
    except yaml.YAMLError as error:
        raise ValueError(str(error).replace('in "<unicode string>",', "at")) from error


def _check_plain(text: str, depth: int) -> None:
    """Checks the events of a text before any value is built."""
    import yaml

    level = 0
    for event in yaml.parse(text, Loader=_safe()):
        level += isinstance(event, yaml.CollectionStartEvent)
        level -= isinstance(event, yaml.CollectionEndEvent)
        if level > depth:
            raise ValueError(f"it is nested more than {depth} levels deep")
        if getattr(event, "anchor", None) or getattr(event, "tag", None):
            raise ValueError("it has a tag, an anchor or an alias")


def _safe() -> Any:  # noqa: ANN401  # a class of PyYAML, which has no types
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast


def _loader(*, unique: bool) -> type[yaml.SafeLoader]:
    import yaml

    safe: Any = _safe()

    class Loader(safe):  # type: ignore[misc]  # a class chosen at run time
        yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  # as PyYAML declares it

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, Any]:  # noqa: ANN401  # PyYAML's
            read = super().construct_mapping(node, deep)
            typed = {each if isinstance(each, str) else str(each): read[each] for each in read}
            if unique and len(typed) < len(node.value):
                keys = [str(self.construct_object(key)) for key, _ in node.value]
                at = next((at for at, key in enumerate(keys) if key in keys[:at]), -1)
                problem = f"the key {keys[at]!r} is given twice"
                raise yaml.constructor.ConstructorError(
                    problem=problem, problem_mark=node.value[at][0].start_mark
                )
            return typed

    for tag, pattern, first in (
        ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
        ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
        ("int", rf"^{_NUMBER}$", list("-+0123456789")),
        ("float", rf"^{_NUMBER}(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?$", list("-+0123456789")),
        ("merge", r"^<<$", ["<"]),
    ):
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(pattern), first)
    return Loader
