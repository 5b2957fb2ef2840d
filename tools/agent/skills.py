"""Skills: written instructions for recurring tasks, loaded step by step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import Field

from tools.agent.skillfiles.skill import MAIN, FrontMatter, Skill
from tools.answers.tool_cards import clipped_line
from tools.conversion.arguments.validation_errors import nearest
from tools.core.context import RequestContext
from tools.core.errors import NotFoundError, PermissionDeniedError
from tools.core.result import OmitNone, ToolModel
from tools.core.spec import Alias, Effect, ToolScope, tool
from tools.core.toolset import folded_name
from tools.core.unicode_safety import hidden, revealed
from tools.retrieval.index_updates import TAG
from tools.retrieval.models import SearchQuery
from tools.sandbox.files.text_files import count_lines, excerpt, line_span, unicode_name, visible

LINE_CHARACTERS = 160  # limit on the description of a skill in a list


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
        told = (
            each.named + (f" (see {' or '.join(each.instead)})" if each.instead else "")
            for each in gone
        )
        if gone:
            needs = "It needs" if is_required else "It names"
            yield f"[{needs} what is not here: {', '.join(told)}.]"


LEAST_SHOWN = 500  # characters of a text that are always shown, however long its header is
MOST_LISTED_FILES = 40
MOST_NAMED_TOOLS = 30
NAME_CHARACTERS = 100

CLOSE_ENOUGH = 0.4  # minimum score of a tool to suggest instead of a missing one
MOST_INSTEAD = 2

OF_THE_BEST = 0.5  # minimum score of a matching skill, relative to the best one

SkillName = Annotated[
    str,
    Field(min_length=1, max_length=256, description="As list_skills has it"),
    Alias("skill", "skill_name", "command"),
]


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.READ},
    tags=("agent", "skills"),
    capabilities=("list instructions for recurring tasks", "find a skill"),
)
def list_skills(
    context: RequestContext,
    query: Annotated[
        str, Field(max_length=2_000, description="What for; empty lists all by source")
    ] = "",
    limit: Annotated[int, Field(ge=1, le=1_000, description="Most skills")] = 50,
    offset: Annotated[int, Field(ge=0, le=2**31, description="How many to leave out")] = 0,
) -> SkillList:
    """Lists skills: instructions for recurring tasks, each in a line; load_skill has the rest."""
    seen = context.catalogue.skills.seen_by(context.identity, context.tool_set)
    skills = [each for each in seen if each.is_for_models]
    fitting = _matching(context, query, skills) if query.strip() else skills
    shown = fitting[offset : offset + limit]
    return SkillList(
        skills=[ListedSkill.of(each) for each in shown],
        total=len(skills),
        has_more=len(fitting) > offset + limit,
    )


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.READ},
    tags=("agent", "skills"),
    capabilities=("load the instructions of a skill", "read a reference file of a skill"),
    aliases_elsewhere=("skill", "activate_skill", "read_skill", "view_skill"),
)
def load_skill(
    context: RequestContext,
    name: SkillName,
    file: Annotated[
        str,
        Field(min_length=1, max_length=4_096, description="One of its files"),
        Alias("path", "file_path"),
    ] = MAIN,
    ranges: Annotated[
        list[int] | None,
        Field(min_length=2, max_length=2, description="[first, last] line, as of read_file"),
    ] = None,
) -> LoadedSkill:
    """Loads a skill's instructions, then what they refer to, file by file. Follow what fits."""
    skill = context.catalogue.skills.find(name, context.identity, context.tool_set)
    if not skill.is_for_models:
        raise PermissionDeniedError(
            f"The skill {skill.path!r} is for people to start (disable-model-invocation).",
            next_actions=[f"Ask the user for it: the prompt `skill` with name={skill.path}."],
        )
    is_main = file == MAIN
    read = _text(skill, file)
    text = revealed(FrontMatter.of(read).body.lstrip("\n") if is_main else read)
    loaded = LoadedSkill(
        name=skill.path,
        source=skill.place.shown,
        directory=unicode_name(skill.where),
        file=file,
        total_lines=count_lines(text),
        problems=list(skill.problems) if is_main else [],
    )
    if hidden(read):
        loaded.problems.append("Its text hides characters, shown here by their codes.")
    if is_main:
        others = [each for each in skill.listed()[0] if each.path != MAIN]
        loaded.files = [
            LoadedFile(path=unicode_name(each.path), size=each.size)
            for each in others[:MOST_LISTED_FILES]
        ]
        loaded.more_files = len(others) - len(loaded.files)
        loaded.tools = _needed(context, skill)
    total = loaded.total_lines
    first, last = line_span(ranges, total, exact=False) if ranges else (1, total)
    room = max(context.text_budget - len(loaded.to_text()), LEAST_SHOWN)
    shown = excerpt(text, first, last, limit=room)
    return loaded.model_copy(
        update={"content": shown.content, "first_line": shown.first, "last_line": shown.last}
    )


def _matching(context: RequestContext, query: str, skills: Sequence[Skill]) -> list[Skill]:
    """Returns the skills that match a need, best first; drops those far below the best."""
    asked = SearchQuery(query_text=query, tags_filter=(TAG,), top_k=max(len(skills), 1))
    found = context.catalogue.search(asked, context.identity)
    by_path = {each.path: each for each in skills}
    fitting = [each for each in found if each.record.name in by_path]
    least = fitting[0].score * OF_THE_BEST if fitting else 0.0
    return [by_path[each.record.name] for each in fitting if each.score >= least]


def _text(skill: Skill, file: str) -> str:
    try:
        return skill.text(file)
    except NotFoundError as error:
        files = [each.path for each in skill.listed()[0]]
        meant = nearest(file, files)
        raise NotFoundError(
            f"The skill {skill.path!r} has no file {file!r}.",
            suggestions=[meant] if meant else [],
            next_actions=[f"Load one of its files: {', '.join(files[:MOST_LISTED_FILES])}."],
        ) from error


def _needed(context: RequestContext, skill: Skill) -> list[NeededTool]:
    """Returns the tools that a skill names, with the tools here that they refer to."""
    named = dict.fromkeys((*skill.required_tools, *skill.allowed_tools))
    needed = []
    for name in list(named)[:MOST_NAMED_TOOLS]:
        is_required = name in skill.required_tools
        called = name.partition("(")[0].removeprefix("mcp__").removeprefix("toolcrib__")
        spec = context.catalogue.registry.get(called)
        if spec is not None and context.tool_set is not None:
            spec = spec if context.tool_set.admits(spec) else None
        needed.append(
            NeededTool(
                named=revealed(clipped_line(name, NAME_CHARACTERS)),
                tool=None if spec is None else spec.name,
                instead=_instead(context, called) if is_required and spec is None else [],
                required=is_required,
            )
        )
    return needed


def _instead(context: RequestContext, name: str) -> list[str]:
    """Returns tools that may replace a missing one."""
    asked = SearchQuery(query_text=name, top_k=MOST_INSTEAD * 2, min_score=CLOSE_ENOUGH)
    found = context.catalogue.search(asked, context.identity, admitted=context.tool_set)
    tools = [each.spec.name for each in found if each.spec and not each.record.is_skill]
    return tools[:MOST_INSTEAD]
