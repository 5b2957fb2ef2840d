"""Defines the records, queries and results of the tool index."""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import ConfigDict, Field, field_validator
from pydantic_core import PydanticCustomError, to_json

from tools.core.result import ToolModel
from tools.core.toolset import CREATED

# The prefix of the id of a tool that only a file describes; tool names have no colon.
FROM_FILE = "file:"
SKILL = "skill:"  # the prefix of a skill's id
Match = Literal["any", "all"]  # the number of tags that a tool needs: any one of them, or all

Kind = Literal["records", "tools", "skills"]

SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n\s*\n|(?<=[\u3002\uff01\uff1f])")
_WORD_STARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SEPARATORS = re.compile(r"[_\-./:\s]+")


def first_sentence(description: str) -> str:
    """Returns the first sentence of a description, in one line."""
    return " ".join(SENTENCE_END.split(description.strip(), maxsplit=1)[0].split())


def spaced(name: str) -> str:
    """Splits a name into words: `getWeather_v2` becomes `get Weather v2`."""
    return _SEPARATORS.sub(" ", _WORD_STARTS.sub(" ", name)).strip()


class ToolRecord(ToolModel):
    """The searchable texts of a tool, without what is needed to call it.

    Attributes:
        tool_id: Its id; adding another record with the same id replaces it.
        name: Its name.
        description: What it does.
        tags: Groups it belongs to.
        capabilities: Things it can do, in words.
        parameters: JSON Schema of its arguments.
        server: The server it comes from; empty for none.
        aliases: Its other names.
        names_only: Whether only its names may be known, because it is in quarantine.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")
    tool_id: str = Field(min_length=1)
    name: str = Field(min_length=1)
    description: str = ""
    tags: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    parameters: dict[str, Any] | None = None
    server: str = ""
    aliases: tuple[str, ...] = ()
    names_only: bool = False

    @field_validator("*")
    @classmethod
    def _check_json(cls, value: object) -> object:
        try:
            to_json(value)
        except ValueError as error:
            problem = "nested too deeply, or not what JSON can hold"
            raise PydanticCustomError("json", problem) from error
        return value

    @property
    def kind(self) -> Kind:
        """What it describes: a tool that only a file knows, a skill, or a callable tool."""
        return "records" if self.is_from_file else "skills" if self.is_skill else "tools"

    @property
    def is_from_file(self) -> bool:
        """Returns whether only a file describes it, so that it can be found but not called."""
        return self.tool_id.startswith(FROM_FILE)

    @property
    def is_skill(self) -> bool:
        """Returns whether it is a skill, which is loaded rather than called."""
        return self.tool_id.startswith(SKILL)

    @property
    def is_created(self) -> bool:
        """Returns whether it was created for one user."""
        return self.tool_id.startswith(CREATED)

    @property
    def bare_name(self) -> str:
        """The name without the server's prefix `server__`."""
        return self.name.removeprefix(f"{self.server}__") if self.server else self.name

    def redacted(self) -> ToolRecord:
        """Returns the record without its texts if only its names may be known."""
        if not self.names_only:
            return self
        hidden = {"description": "", "tags": (), "capabilities": (), "parameters": None}
        return self.model_copy(update=hidden)


class SearchQuery(ToolModel):
    """A search for tools.

    Attributes:
        query_text: The need in words, or names of tools.
        tags_filter: Tags that a tool must have, ignoring case; none allow every tool.
        match: Whether one of the tags suffices.
        top_k: Maximum number of tools.
        min_score: Minimum score of a tool.
    """

    model_config = ConfigDict(frozen=True)
    query_text: str
    tags_filter: tuple[str, ...] = ()
    match: Match = "any"
    top_k: int = Field(5, ge=1)
    min_score: float | None = None


class SearchResult(ToolModel):
    """A tool that fits.

    Attributes:
        tool: The tool.
        score: How well it fits, above 0 and up to 1; never higher than that of a better rank.
        rank: Its rank, from 1.
        also: Ids of its exact duplicates on other servers.
    """

    model_config = ConfigDict(frozen=True)
    tool: ToolRecord
    score: float
    rank: int
    also: tuple[str, ...] = ()
