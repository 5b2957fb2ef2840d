"""Builds the tool catalogue, which follows changes of other servers and APIs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from server.composition.skills import make_skills
from server.settings import Settings
from server.upstream.no_gateway import NoGateway
from storage.library import Library
from tools.core.registry import ToolRegistry
from tools.retrieval.catalogue import Catalogue
from tools.sandbox.files.sandbox import Sandbox

if TYPE_CHECKING:
    from server.upstream.gateway import Gateway
    from tools.openapi.api import Apis
    from tools.retrieval.learning import Learning


def make_catalogue(  # noqa: PLR0913  # the composition root hands over every part
    settings: Settings,
    environ: Mapping[str, str],
    sandbox: Sandbox,
    *,
    registry: ToolRegistry,
    library: Library,
    gateway: Gateway | NoGateway,
    apis: Apis | None,
) -> Catalogue:
    """Builds the search for tools and skills.

    Args:
        settings: The settings.
        environ: The environment, for the locations of agents' skills.
        sandbox: The files of the root.
        registry: The tools.
        library: Stores the index.
        gateway: The other servers.
        apis: The HTTP APIs; None without any.
    """
    catalogue = Catalogue(
        registry,
        library=library,
        learning=partial(_learning, library) if settings.toolsearch.learn else None,
        is_down=partial(_is_down, gateway),
        why_unlisted=partial(_why_unlisted, gateway),
        settle=None if apis is None else apis.settle,
        skills=make_skills(settings, environ, gateway.skills, sandbox),
    )
    gateway.on_change(lambda _server, kinds: catalogue.notify() if "tools" in kinds else None)
    if apis is not None:
        apis.on_change(catalogue.notify)
    return catalogue


def _learning(library: Library) -> Learning:
    from storage.index.embedders.bundled import StaticEmbedder
    from tools.retrieval.learning import Learning

    return Learning(library.catalog.uses, StaticEmbedder())


def _is_down(gateway: Gateway | NoGateway, server: str) -> bool:
    upstream = gateway.upstreams.get(server)
    return upstream is not None and upstream.state == "down"


def _why_unlisted(gateway: Gateway | NoGateway, server: str) -> str:
    upstream = gateway.upstreams.get(server)
    return "" if upstream is None else upstream.why_unlisted
