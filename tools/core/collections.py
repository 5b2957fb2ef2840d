"""Holds the sources, directories, secrets and agents that the settings define."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from storage.directory.models import RESEARCHERS, Directory
from storage.retrieval.routing import Source
from tools.agent.agents.agent import Agent
from tools.conversion.arguments.descriptions import show
from tools.conversion.arguments.validation_errors import nearest
from tools.core.errors import InvalidArgumentsError

NamedT = TypeVar("NamedT", Source, Directory)


@dataclass(frozen=True, slots=True)
class Collections:
    """The named collections of the settings."""

    # Named parts of the context that can be searched, in the order of the settings.
    sources: tuple[Source, ...] = ()
    # Directories of people or things; researchers always come first.
    directories: tuple[Directory, ...] = (RESEARCHERS,)
    # The hosts of each secret that requests may use.
    secrets: Mapping[str, Sequence[str]] = field(default_factory=dict)
    # The agents that work can be delegated to.
    agents: Mapping[str, Agent] = field(default_factory=dict)

    def source(self, name: str) -> Source:
        """Returns the source of that name."""
        return _find_named("source", name, self.sources)

    def directory(self, name: str) -> Directory:
        """Returns the directory of that name."""
        return _find_named("directory", name, self.directories)


def _find_named(parameter: str, name: str, collections: Sequence[NamedT]) -> NamedT:
    by_name = {each.name: each for each in collections}
    if name in by_name:
        return by_name[name]
    meant = nearest(name, by_name)
    known = f"known are: {', '.join(by_name)}" if by_name else "the settings name none"
    raise InvalidArgumentsError(
        f"{parameter}: {show(name)} is unknown; {known}.",
        suggestions=[meant] if meant else [],
        next_actions=["Give an existing name."] if by_name else [f"Leave {parameter} out."],
    )
