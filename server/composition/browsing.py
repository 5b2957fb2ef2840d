"""Builds resources and prompts for clients, and their change notifications."""

from __future__ import annotations

from collections.abc import Callable

from server.mcp.browsing.functions import FunctionProvider
from server.mcp.browsing.provider import Browsing, Provider
from server.mcp.browsing.skill_provider import SkillProvider
from server.mcp.profiles import Profiles
from server.mcp.prompts import PromptProvider
from server.mcp.resources import ContextProvider, DocumentProvider
from server.mcp.sessions import ClientRequests
from server.upstream.late_gateway import LateGateway
from tools.core.client import Sampler
from tools.functions.files import LISTS, FunctionFiles
from tools.functions.programs.created import CreatedTools


def make_browsing(  # noqa: PLR0913  # the composition root hands over every part by name
    prompts: PromptProvider,
    contexts: ContextProvider,
    profiles: Profiles,
    *,
    functions: FunctionFiles,
    gateway: LateGateway,
    created: CreatedTools,
    requests: ClientRequests,
    sampler: Sampler | None,
    lists_all: bool,  # whether every tool is listed
    lists_others: Callable[[], bool],  # whether tools of other servers may be
    is_followed: bool,  # whether servers and functions may be added while running
) -> Browsing:
    """Builds resources and prompts, whose providers are asked in their order."""
    admits = profiles.admits_server
    offered = FunctionProvider(functions.offered, requests, profiles, functions.loaded, sampler)
    skills, documents = SkillProvider(prompts.skills), DocumentProvider(contexts)
    providers: list[Provider] = [prompts, offered, contexts, skills, documents]
    changing = {"resources"}  # skills can be saved at any time
    changing |= {"tools"} if lists_all or (gateway.upstreams and lists_others()) else set()
    changing |= {"prompts"} if gateway.upstreams else set()
    changing |= set(LISTS.values()) if functions.paths or is_followed else set()
    browsing = Browsing(providers, changing, admits)

    def add_servers() -> Provider:
        from server.upstream.browsing.provider import ServerProvider  # only with servers

        providers.append(ServerProvider(gateway, requests, admits, offered.addresses))
        return providers[-1]

    def tell(server: str, kinds: frozenset[str]) -> None:
        hidden = set() if lists_others() else {"tools"}
        browsing.subscriptions.changed(server, kinds - hidden)

    if gateway.is_built:
        add_servers()
    gateway.when_built(lambda: add_servers().running(browsing.subscriptions))
    gateway.on_change(tell)
    requests.changed = offered.changed
    functions.on_change(lambda kinds: browsing.subscriptions.changed("", kinds))
    created.on_change(lambda: browsing.subscriptions.changed("", {"tools"}))
    return browsing
