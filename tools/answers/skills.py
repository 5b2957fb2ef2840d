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
"""What a list says of a skill."""


class ListedSkill(ToolModel):
    """A skill in one line.

    Attributes:
        name: What load_skill takes.
        description: What it does and when it helps.
        source: Where it was found; what begins with "project" was written by whoever writes there,
            what begins with "server" by another server.
        problems: How many things are wrong with it, which load_skill tells.
    """

    name: str
    description: str
    source: str
    problems: int = 0

    @classmethod
    def of(cls, skill: Skill) -> ListedSkill:
        """The line of a skill."""
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
        total: How many there are.
        has_more: Whether more follow.
    """

    skills: list[ListedSkill]
    total: int
    has_more: bool = False

    def to_text(self) -> str:
        """A line a skill, those of one source together."""
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
        size: Its bytes.
    """

    path: str
    size: int


class NeededTool(ToolModel):
    """A tool that a skill names.

    Attributes:
        named: As the skill names it.
        tool: The tool here that is meant; absent where there is none.
        instead: Tools here that may do as well, where there is none.
        required: Whether the skill does not work without it.
    """

    named: str
    tool: OmitNone[str] = None
    instead: list[str] = Field(default_factory=list)
    required: bool = False


class LoadedSkill(ToolModel):
    """A text of a skill.

    Attributes:
        name: The skill.
        source: Where it was found; what begins with "project" was written by whoever writes there,
            what begins with "server" by another server.
        directory: Where its files are; empty where that is another server.
        file: Which of them this is.
        content: The text, or the lines of it that were asked for or had room.
        first_line: Number of the first line shown.
        last_line: Number of the last.
        total_lines: How many there are.
        files: The other files, with the instructions alone.
        more_files: How many files are not among them.
        tools: The tools that it names, with the instructions alone.
        problems: What is wrong with it.
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
        """What has to be known of the skill in a few lines, then the text."""
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
        head += _told_of(self.tools)
        if self.last_line < self.total_lines:
            head.append(f"[For the rest, ask for ranges [{self.last_line + 1}, -1].]")
        return "\n".join([*head, "", self.content])

    def _place(self) -> str:
        """Where its files are, and whether that is where files and programs of tools are."""
        if not self.directory:
            return ""
        beyond = "" if self.source.startswith("project") else ", outside the root"
        return f". They are in {visible(self.directory)}{beyond}."


def _told_of(tools: Sequence[NeededTool]) -> Iterator[str]:
    """Which tools are called otherwise here, and which are missing."""
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
