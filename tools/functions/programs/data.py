"""The data that tools answer, as a program has it: plain, with attributes for convenience."""

from __future__ import annotations

from typing import Any, NoReturn

SHOWN_KEYS = 20
"""Keys that are named where another was asked for."""


class Data(dict[str, Any]):
    """A JSON object, whose keys are attributes too where no method is called so."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # any JSON
        if name in self:
            return self[name]
        raise AttributeError(self._none(name), name=name, obj=self)

    def __setattr__(self, name: str, value: object) -> None:
        self[name] = value

    def __missing__(self, key: str) -> NoReturn:
        raise KeyError(self._none(key))

    def _none(self, key: object) -> str:
        keys = list(map(repr, self))
        more = ", …" if len(keys) > SHOWN_KEYS else ""
        return f"no key {key!r}; there are {', '.join(keys[:SHOWN_KEYS])}{more}"


def data_of(value: Any) -> Any:  # noqa: ANN401  # decoded JSON
    """The same value with every object as Data."""
    if isinstance(value, dict):
        return Data({key: data_of(each) for key, each in value.items()})
    if isinstance(value, list):
        return list(map(data_of, value))
    return value
