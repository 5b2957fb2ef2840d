"""YAML as JSON has it: without dates, and with no other words for true and false."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import yaml  # type: ignore[import-untyped]  # PyYAML has no types

_NUMBER = r"[-+]?(?:0|[1-9][0-9]*)"


def read_yaml(text: str, *, plain: int = 0, unique: bool = False) -> object:
    """What a YAML text says.

    Args:
        text: The text.
        plain: How deep it may be nested if it has to do without tags, anchors and aliases, with
            which a few lines say billions; 0 allows all that is safe to read.
        unique: Whether a key that is given twice is refused; otherwise the last value counts.

    Raises:
        ValueError: If it is no YAML, or more than it may be.
    """
    import yaml

    try:
        if plain:
            _check_plain(text, plain)
        return yaml.load(text, Loader=_loader(unique=unique))  # noqa: S506  # it is a safe one
    except yaml.YAMLError as error:
        raise ValueError(str(error).replace('in "<unicode string>",', "at")) from error


def _check_plain(text: str, depth: int) -> None:
    """Looks at the events of a text, of which nothing is made yet, so that none goes too deep."""
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

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the other takes ten times as long


def _loader(*, unique: bool) -> type[yaml.SafeLoader]:
    import yaml

    safe: Any = _safe()

    class Loader(safe):  # type: ignore[misc]  # a class known only now
        yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  # as PyYAML declares it

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, Any]:  # noqa: ANN401  # PyYAML's
            read = super().construct_mapping(node, deep)
            made = {each if isinstance(each, str) else str(each): read[each] for each in read}
            if unique and len(made) < len(node.value):
                keys = [str(self.construct_object(key)) for key, _ in node.value]
                at = next((at for at, key in enumerate(keys) if key in keys[:at]), -1)
                problem = f"the key {keys[at]!r} is given twice"
                raise yaml.constructor.ConstructorError(
                    problem=problem, problem_mark=node.value[at][0].start_mark
                )
            return made

    for tag, pattern, first in (
        ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
        ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
        ("int", rf"^{_NUMBER}$", list("-+0123456789")),
        ("float", rf"^{_NUMBER}(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?$", list("-+0123456789")),
        ("merge", r"^<<$", ["<"]),
    ):
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(pattern), first)
    return Loader
