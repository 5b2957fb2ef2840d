"""What the tool index holds, is asked and answers."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field, field_validator
from pydantic_core import PydanticCustomError, to_json

from tools.core.result import ToolModel
from tools.core.toolset import CREATED

FROM_FILE = "file:"
"""What the id of a tool that only a file describes begins with; no name of a tool has a colon."""

SKILL = "skill:"
"""What the id of a skill begins with, which is found beside the tools."""

Match = Literal["any", "all"]
"""Whether one of several tags is enough, or all are needed."""


class ToolRecord(ToolModel):
    """A tool as it is found: its texts, and nothing of how it is called.

    Attributes:
        tool_id: What identifies it; adding another record of the same id replaces it.
        name: What it is called.
        description: What it does.
        tags: Groups it belongs to.
        capabilities: Things it can do, in words.
        parameters: JSON Schema of its arguments.
        server: The server it comes from; empty for none.
        aliases: Other names that it is known by.
        names_only: Whether nothing but its names is known to anybody: it is in quarantine.
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
        """Refuses what could be neither kept nor shown."""
        try:
            to_json(value)
        except ValueError as error:
            problem = "nested too deeply, or not what JSON can hold"
            raise PydanticCustomError("json", problem) from error
        return value

    @property
    def is_from_file(self) -> bool:
        """Whether only a file describes it, so that it can be found and not called."""
        return self.tool_id.startswith(FROM_FILE)

    @property
    def is_skill(self) -> bool:
        """Whether it is a skill, which is loaded and not called."""
        return self.tool_id.startswith(SKILL)

    @property
    def is_created(self) -> bool:
        """Whether it was created for one user alone."""
        return self.tool_id.startswith(CREATED)

    @property
    def bare_name(self) -> str:
        """The name without the server's, which stands before it as `server__name`."""
        return self.name.removeprefix(f"{self.server}__") if self.server else self.name

    def redacted(self) -> ToolRecord:
        """The record, without any text but its names where those are all that may be known."""
        if not self.names_only:
            return self
        hidden = {"description": "", "tags": (), "capabilities": (), "parameters": None}
        return self.model_copy(update=hidden)


class SearchQuery(ToolModel):
    """What is looked for.

    Attributes:
        query_text: The need in words, or names of tools.
        tags_filter: Tags that a tool must have, in any case of letters; none allow every tool.
        match: Whether one of the tags is enough.
        top_k: Tools at most.
        min_score: Score that a tool must reach.
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
        rank: Its place, from 1.
        also: Ids of the tools that are exact duplicates of it, on other servers.
    """

    model_config = ConfigDict(frozen=True)

    tool: ToolRecord
    score: float
    rank: int
    also: tuple[str, ...] = ()
