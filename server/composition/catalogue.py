"""Builds the catalogue of tools and skills, which follows changes of other servers and APIs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyio import from_thread
from mcp.server.context import ServerRequestContext

from server.composition.machine import MachineParts, make_sandbox
from server.mcp.browsing.skill_view import SkillView
from server.mcp.profiles import Profiles
from server.settings import Settings
from server.upstream.late_gateway import LateGateway
from storage.library import Library
from storage.models import Identity
from tools.agent.skillfiles.places import SkillPlaces
from tools.agent.skillfiles.skill import Skill
from tools.agent.skillfiles.skills import Skills
from tools.core.registry import ToolRegistry
from tools.core.toolset import ToolSet
from tools.retrieval.catalogue import LOADER, Catalogue
from tools.sandbox.files.sandbox import Sandbox

if TYPE_CHECKING:
    from tools.openapi.api import Apis
    from tools.retrieval.learning import Learning


def make_catalogue(
    parts: MachineParts,
    registry: ToolRegistry,
    library: Library,
    gateway: LateGateway,
    apis: Apis | None,
) -> Catalogue:
    """Builds the search for tools and skills."""

    def learning() -> Learning:
        from storage.index.embedders.bundled import StaticEmbedder
        from tools.retrieval.learning import Learning

        return Learning(library.catalog.uses, StaticEmbedder())

    def is_down(server: str) -> bool:
        upstream = gateway.upstreams.get(server)
        return upstream is not None and upstream.state == "down"

    def why_unlisted(server: str) -> str:
        upstream = gateway.upstreams.get(server)
        return "" if upstream is None else upstream.why_unlisted

    def unlisted() -> Mapping[str, str]:
        if not any(each.why_unlisted for each in gateway.upstreams.values()):
            return {}
        from_thread.run(gateway.ready)
        whys = {name: each.why_unlisted for name, each in gateway.upstreams.items()}
        return {name: why for name, why in whys.items() if why}

    catalogue = Catalogue(
        registry,
        library=library,
        learning=learning if parts.settings.toolsearch.learn else None,
        is_down=is_down,
        why_unlisted=why_unlisted,
        unlisted=unlisted,
        settle=None if apis is None else apis.settle,
        skills=make_skills(parts.settings, parts.variables, gateway.skills, parts.sandbox),
    )
    gateway.on_change(lambda _server, kinds: catalogue.notify() if "tools" in kinds else None)
    if apis is not None:
        apis.on_change(catalogue.notify)
    return catalogue


def make_skills(
    settings: Settings,
    environ: Mapping[str, str],
    others: Callable[[], Sequence[Skill]] = tuple,
    sandbox: Sandbox | None = None,
) -> Skills:
    """Builds the skills, which are read on first use; `others` returns those of other servers."""
    try:
        home = Path.home()
    except RuntimeError:  # the user has no home directory
        home = None
    places = SkillPlaces(
        files=sandbox or make_sandbox(settings, settings.root),
        machine=make_sandbox(settings, Path(settings.root.anchor)),
        directories=settings.skills.directories,
        discover=settings.skills.discover,
        home=home,
        variables=environ,
    )
    return Skills(places, owner=settings.identity.user_id, others=others)


def view_skills(catalogue: Catalogue, identity: Identity, profiles: Profiles) -> SkillView:
    """Builds the clients' view of skills, shown to clients that may load them."""

    def tool_set_of(ctx: ServerRequestContext[Any, Any]) -> ToolSet | None:
        profile = profiles.of(ctx)
        return None if profile is None else profile.tool_set

    def may_load(tool_set: ToolSet | None) -> bool:
        loader = catalogue.registry.get(LOADER)
        return loader is not None and (tool_set is None or tool_set.admits(loader))

    return SkillView(catalogue.skills, identity, tool_set_of, may_load)
