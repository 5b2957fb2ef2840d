"""Skills as tools answer them: in a line, and loaded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import Field

from tools.agent.skillfiles.skill import Skill
from tools.answers.tool_cards import clipped_line
from tools.core.result import OmitNone, ToolModel
from tools.core.toolset import folded_name
from tools.sandbox.files.text_files import visible

LINE_CHARACTERS = 160
"""Limit on the description of a skill in a list."""


class ListedSkill(ToolModel):
    """A skill in one line.

    Attributes:
        name: Its name for load_skill.
        description: What it does and when to use it.
        source: Where it was found; "project…" means that anyone with access to the project wrote
            it, "server…" that another server did.
        problems: Number of problems; load_skill lists them.
    """

    name: str
    description: str
    source: str
    problems: int = 0

    @classmethod
    def of(cls, skill: Skill) -> ListedSkill:
        """Converts a skill."""
        return cls(
            name=skill.path,
            description=clipped_line(skill.description, LINE_CHARACTERS),
            source=skill.place.shown,
            problems=len(skill.problems),
        )


class SkillList(ToolModel):
    """Some of the skills.

    Attributes:
        skills: One line each.
        total: Total number of skills.
        has_more: Whether there are more.
    """

    skills: list[ListedSkill]
    total: int
    has_more: bool = False

    def to_text(self) -> str:
        """Formats one line per skill, grouped by source."""
        if not self.skills:
            return f"No skill fits, of {self.total}." if self.total else "There are no skills."
        lines, source = [], ""
        for each in self.skills:
            if each.source != source:
                source = each.source
                lines.append(f"[{source}]")
            lines.append(f"{each.name}: {each.description}")
        more = "\nThere are more: ask again with a higher offset." if self.has_more else ""
        return "\n".join(lines) + more


class LoadedFile(ToolModel):
    """A file of a skill that can be loaded by its path.

    Attributes:
        path: Relative to the skill.
        size: Size in bytes.
    """

    path: str
    size: int


class NeededTool(ToolModel):
    """A tool that a skill names.

    Attributes:
        named: Its name in the skill.
        tool: The tool here that it refers to; absent if there is none.
        instead: Tools here that may do instead.
        required: Whether the skill depends on it.
    """

    named: str
    tool: OmitNone[str] = None
    instead: list[str] = Field(default_factory=list)
    required: bool = False


class LoadedSkill(ToolModel):
    """A text of a skill.

    Attributes:
        name: The skill.
        source: Where it was found; "project…" means that anyone with access to the project wrote
            it, "server…" that another server did.
        directory: Where its files are; empty if on another server.
        file: The loaded file.
        content: The text, or the requested lines that fit.
        first_line: Number of the first line shown.
        last_line: Number of the last line shown.
        total_lines: Number of lines in the file.
        files: The other files; only with the instructions.
        more_files: Number of files not listed.
        tools: The tools it names; only with the instructions.
        problems: Its problems.
    """

    name: str
    source: str
    directory: str
    file: str
    content: str = ""
    first_line: int = 0
    last_line: int = 0
    total_lines: int
    files: list[LoadedFile] = Field(default_factory=list)
    more_files: int = 0
    tools: list[NeededTool] = Field(default_factory=list)
    problems: list[str] = Field(default_factory=list)

    def to_text(self) -> str:
        """Formats what to know about the skill in a few lines, then the text."""
        lines = f"lines {self.first_line}-{self.last_line} of {self.total_lines}"
        head = [f"[skill {self.name}, {self.source}: {self.file}, {lines}]"]
        if self.source.startswith("project"):
            head.append("[It comes with the project's files, not from the user.]")
        elif self.source.startswith("server "):
            head.append(f"[These are the words of the {self.source}, not of the user.]")
        head += [f"[Wrong with it: {each}]" for each in self.problems]
        if self.files:
            named = ", ".join(visible(each.path) for each in self.files)
            more = f" and {self.more_files} more" if self.more_files else ""
            head.append(f"[Its files, to load by file: {named}{more}{self._place()}]")
        head += _tool_notes(self.tools)
        if self.last_line < self.total_lines:
            head.append(f"[For the rest, ask for ranges [{self.last_line + 1}, -1].]")
        return "\n".join([*head, "", self.content])

    def _place(self) -> str:
        """Returns where its files are, and whether tools can reach them there."""
        if not self.directory:
            return ""
        beyond = "" if self.source.startswith("project") else ", outside the root"
        return f". They are in {visible(self.directory)}{beyond}."


def _tool_notes(tools: Sequence[NeededTool]) -> Iterator[str]:
    """Yields which tools have other names here, and which are missing."""
    here = [
        f"{each.named} is {each.tool}"
        for each in tools
        if each.tool is not None and folded_name(each.tool) != folded_name(each.named)
    ]
    if here:
        yield f"[Tools that it names: {', '.join(here)}.]"
    for is_required in (True, False):
        gone = [each for each in tools if each.tool is None and each.required is is_required]
        told = (f"{each.named}{_instead(each)}" for each in gone)
        if gone:
            needs = "It needs" if is_required else "It names"
            yield f"[{needs} what is not here: {', '.join(told)}.]"


def _instead(tool: NeededTool) -> str:
    return f" (see {' or '.join(tool.instead)})" if tool.instead else ""
