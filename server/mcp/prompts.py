"""Prompts, which clients show as slash commands: recall, remember, what_happened, skill."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any
from zoneinfo import available_timezones

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from server.mcp.browsing.answers import Section, completion_of
from server.mcp.browsing.provider import Provider
from server.mcp.browsing.skill_view import SkillView
from server.mcp.resources import ContextProvider, read_in_thread
from server.mcp.sessions import Sessions
from server.mcp.views import Relevant, happenings
from storage.library import Shelf
from storage.models import Identity
from tools.agent.skillfiles.skill import MAIN, FrontMatter
from tools.agent.skillfiles.skills import Skills
from tools.answers.dates import PHRASES, Period, zone_of
from tools.answers.tool_cards import parameters
from tools.conversion.browsing import fitting
from tools.core.audit.recording import Recording
from tools.core.context import Origin
from tools.core.errors import NotFoundError
from tools.core.registry import ToolRegistry
from tools.core.unicode_safety import encodable, revealed

LOOKED_THROUGH = 1_000
"""Maximum number of entities searched for names."""

LONGEST = 10_000
"""Maximum length of an argument."""

RequestContext = ServerRequestContext[Any, Any]


def _argument(name: str, description: str, *, required: bool = False) -> types.PromptArgument:
    return types.PromptArgument(name=name, description=description, required=required)


PROMPTS = {
    prompt.name: prompt
    for prompt in (
        types.Prompt(
            name="recall",
            title="Recall",
            description="Brings back what is stored about a topic, with its sources.",
            arguments=[
                _argument("topic", "What about; left out, what is important and what is new")
            ],
        ),
        types.Prompt(
            name="remember",
            title="Remember",
            description="Stores something so that it can be found again.",
            arguments=[_argument("content", "What to keep", required=True)],
        ),
        types.Prompt(
            name="what_happened",
            title="What happened",
            description="Brings back the events of a period, and their summaries.",
            arguments=[
                _argument(
                    "when",
                    'Such as "yesterday", "last week", "monday", "2026-11-22", "2026-11"',
                    required=True,
                ),
                _argument("timezone", 'IANA zone in which days begin, such as "Europe/Paris"'),
            ],
        ),
        types.Prompt(
            name="skill",
            title="Skill",
            description="Starts a skill: instructions for a recurring task.",
            arguments=[
                _argument("name", "Which skill", required=True),
                _argument("task", "What to do with it; what the skill calls its arguments"),
            ],
        ),
    )
}


class PromptProvider(Provider):
    """Our own prompts."""

    def __init__(
        self,
        contexts: ContextProvider,
        registry: ToolRegistry,
        sessions: Sessions,
        recording: Recording | None = None,  # of what the user said
        skills: SkillView | None = None,
    ) -> None:
        self._contexts = contexts
        self._registry = registry
        self._sessions = sessions
        self._recording = recording
        self.skills = skills or SkillView(Skills(), Identity())

    async def prompts(self, ctx: RequestContext) -> Sequence[Section[types.Prompt]]:  # noqa: ARG002  # the same for all
        """Returns the four prompts."""
        return [Section.of("own", list(PROMPTS.values()))]

    async def get_prompt(
        self, ctx: RequestContext, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | None:
        """Renders a prompt for the model."""
        prompt = PROMPTS.get(params.name)
        if prompt is None:
            return None
        given = _check_arguments(prompt, params.arguments or {})
        shelf = self._contexts.shelf_of(ctx)
        try:
            tell = partial(self._relevant_for, ctx, shelf, prompt.name, given)
            told = await read_in_thread("prompts/get", tell)
        except NotFoundError as error:
            raise _invalid(" ".join([error.message, *error.next_actions])) from error
        await self._hear(ctx, shelf.identity, prompt, given, told)
        content = types.TextContent(text=encodable(told.text))
        return types.GetPromptResult(
            description=prompt.description,
            messages=[types.PromptMessage(role="user", content=content)],
        )

    async def complete(
        self, ctx: RequestContext, params: types.CompleteRequestParams
    ) -> types.CompleteResult | None:
        """Completes an argument of a prompt or a variable of one of our addresses."""
        ref, argument = params.ref, params.argument
        named = ref.name if isinstance(ref, types.PromptReference) else ref.uri
        find = _COMPLETED.get((named, argument.name))
        if (named, argument.name) == ("skill", "name"):
            find = partial(self._skill_names, ctx)
        if find is None:
            return completion_of([]) if named in PROMPTS else None
        names = partial(find, self._contexts.shelf_of(ctx))
        found = await read_in_thread("completion/complete", names)
        return completion_of(fitting(found, argument.value))

    async def _hear(
        self,
        ctx: RequestContext,
        identity: Identity,
        prompt: types.Prompt,
        given: Mapping[str, str],
        told: Relevant,
    ) -> None:
        """Records a prompt's first argument as said by the user, and the contexts it returned."""
        if self._recording is None:
            return
        talk = self._sessions.of(ctx, identity)
        await self._recording.hear(
            Origin(identity, session_id=talk.session_id, client=talk.client),
            f"prompt:{prompt.name}",
            next((given.get(each.name, "") for each in prompt.arguments or ()), ""),
            is_recall=prompt.name != "remember",
            context_ids=told.context_ids,
        )

    def _relevant_for(
        self, ctx: RequestContext, shelf: Shelf, name: str, given: Mapping[str, str]
    ) -> Relevant:
        match name:
            case "recall":
                return self._recall(shelf, given.get("topic", ""))
            case "remember":
                return Relevant(self._remember(given["content"]))
            case "skill":
                return Relevant(self._skill(ctx, given["name"], given.get("task", "")))
            case _:
                zone = given.get("timezone") or ""
                return Relevant(_what_happened(shelf, given["when"], zone))

    def _skill_names(self, ctx: RequestContext, _shelf: Shelf) -> list[str]:
        return [each.path for each in self.skills.visible_to(ctx) if each.is_for_people]

    def _skill(self, ctx: RequestContext, name: str, task: str) -> str:
        skill = self.skills.find(ctx, name)
        if not skill.is_for_people:
            raise NotFoundError(f"The skill {skill.path!r} is for models alone (user-invocable).")
        body = FrontMatter.of(skill.text(MAIN)).body
        files = [each.path for each in skill.listed()[0] if each.path != MAIN]
        others = f" `load_skill` loads its other files: {', '.join(files)}." if files else ""
        return (
            f"Follow the skill {skill.path} ({skill.place.shown}) below"
            f"{f', for this: {task}' if task.strip() else ''}.{others}\n\n"
            f"{revealed(body.replace('$ARGUMENTS', task)).strip()}"
        )

    def _recall(self, shelf: Shelf, topic: str) -> Relevant:
        found = self._contexts.relevant(shelf, topic)
        about = f"about {topic.strip()!r} " if topic.strip() else ""
        text = (
            f"This is what my stored context says {about}that may matter now. Use it where it"
            " helps, name the source of what you use, and say so where it does not answer; `query`"
            f" finds more.\n\n{found.text}"
        )
        return Relevant(text, found.context_ids)

    def _remember(self, content: str) -> str:
        tools = ("add_event", "remember")
        known = [spec for spec in map(self._registry.get, tools) if spec is not None]
        signatures = "\n".join(f"- {parameters(spec)}" for spec in known)
        return (
            "Keep the following so that it is found again. If it happened, or will, at some time,"
            " call add_event with that time (ISO 8601; work it out where it is relative); if it"
            " stays true, call remember; for several things, call once for each. Give a short"
            " title, the whole content in words that can be understood alone, the names of the"
            " people, projects and organizations in it as entities, and how much it matters as"
            " importance (0 to 10). Then say in one sentence what was kept.\n\n"
            f"{signatures}\n\nTo keep:\n\n{content}"
        )


def _what_happened(shelf: Shelf, when: str, timezone: str) -> str:
    period = Period.parse(when, zone_of(timezone), datetime.now(UTC))
    return (
        f"Tell me what happened: {when} ({period.title}, {timezone or 'local time'}), from my"
        " stored events below, in order and briefly. Times are UTC. If nothing is stored, say so."
        "\n\n"
        f"{happenings(shelf, period)}"
    )


def _check_arguments(prompt: types.Prompt, given: Mapping[str, str]) -> Mapping[str, str]:
    arguments = {each.name: each for each in prompt.arguments or ()}
    for name, value in given.items():
        if name not in arguments:
            there = f"there is {', '.join(arguments)}"
            raise _invalid(f"{prompt.name} has no argument {name[:100]!r}; {there}.")
        if len(value) > LONGEST:
            raise _invalid(f"{name}: send at most {LONGEST} characters, not {len(value)}.")
    for name, argument in arguments.items():
        if argument.required and not given.get(name, "").strip():
            raise _invalid(f"{prompt.name} needs {name}: {argument.description}.")
    return given


def _invalid(message: str) -> MCPError:
    return MCPError(types.INVALID_PARAMS, encodable(message))


def _names(shelf: Shelf) -> list[str]:
    return list(dict.fromkeys(each.name for each in shelf.people.listed(limit=LOOKED_THROUGH)))


def _phrases(_shelf: Shelf) -> list[str]:
    today = datetime.now(UTC).date()
    year, week, _ = today.isocalendar()
    return [*PHRASES, f"{today}", f"{year}-W{week:02}", f"{today:%Y-%m}", f"{today:%Y}"]


_COMPLETED: Mapping[tuple[str, str], Callable[[Shelf], list[str]]] = {
    ("recall", "topic"): _names,
    ("what_happened", "when"): _phrases,
    ("what_happened", "timezone"): lambda _shelf: sorted(available_timezones()),
    ("context://entities/{name}", "name"): _names,
    ("context://plans/{id}", "id"): lambda shelf: [
        plan.id for plan in shelf.plans.listed(LOOKED_THROUGH, closed=True)
    ],
    ("context://relevant{?topic}", "topic"): _names,
    ("context://time/{bucket}", "bucket"): lambda shelf: _phrases(shelf)[-4:-1],
}
