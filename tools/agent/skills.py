"""Skills: written instructions for recurring tasks, loaded step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from tools.agent.skillfiles.frontmatter import FrontMatter
from tools.agent.skillfiles.skill import MAIN, Skill
from tools.answers.skills import ListedSkill, LoadedFile, LoadedSkill, NeededTool, SkillList
from tools.answers.tool_cards import clipped_line
from tools.conversion.arguments.validation_errors import nearest
from tools.core.context import RequestContext
from tools.core.errors import NotFoundError, PermissionDeniedError
from tools.core.invisible import hidden, revealed
from tools.core.spec import Alias, Effect, ToolScope, tool
from tools.retrieval.models import SearchQuery
from tools.retrieval.skill_records import TAG
from tools.sandbox.files.lines import count_lines, excerpt, line_span
from tools.sandbox.files.text_files import unicode_name

LEAST_SHOWN = 500
"""Characters of a text that are always shown, however long its header is."""

MOST_LISTED_FILES = 40
MOST_NAMED_TOOLS = 30
NAME_CHARACTERS = 100

CLOSE_ENOUGH = 0.4
"""Minimum score of a tool to suggest instead of a missing one."""

MOST_INSTEAD = 2

OF_THE_BEST = 0.5
"""Minimum score of a matching skill, relative to the best one."""

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
    skills = [each for each in _skills(context) if each.is_for_models]
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
    known_as=("skill", "activate_skill", "read_skill", "view_skill"),
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


def _skills(context: RequestContext) -> Sequence[Skill]:
    return context.catalogue.skills.seen_by(context.identity, context.tool_set)


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
