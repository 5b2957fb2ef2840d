"""Builds the HTTP APIs in the settings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

from server.mcp.definitions import describe
from server.settings.gateway import OpenApiSettings
from server.settings.settings import Settings
from server.upstream.safety.deception import findings, mentions
from tools.core.errors import UnavailableError, UpstreamError
from tools.core.machine import Machine, first_use
from tools.core.registry import ToolRegistry
from tools.core.spec import ToolSpec
from tools.openapi.api import ApiOptions, Apis, Descriptions
from tools.openapi.description import Selection

SUCCESS = 200


def make_apis(settings: Settings, registry: ToolRegistry, machine: Machine) -> Apis:
    """Builds the registration of the APIs' tools."""
    trusted = {name for name, each in settings.openapi.items() if each.trusted}
    return Apis(
        [options_of(name, each) for name, each in settings.openapi.items() if each.enabled],
        registry,
        make_descriptions(settings, machine),
        vet=partial(_vet, registry, trusted),
    )


def make_descriptions(settings: Settings, machine: Machine) -> Descriptions:
    """Builds the reader of descriptions, which caches downloaded ones."""
    return Descriptions(settings.data_dir / "openapi", _fetching(machine))


def options_of(name: str, api: OpenApiSettings) -> ApiOptions:
    """Converts the settings of an API to options for its tools."""
    return ApiOptions(
        name=name,
        address=api.description,
        base_url=api.url,
        selection=Selection(api.include, api.exclude),
        secret=api.secret,
    )


def _fetching(machine: Machine) -> Callable[[str], Awaitable[bytes]]:
    async def fetch(url: str) -> bytes:
        web = await first_use(machine, "web")
        response = await web.request("GET", url, headers={"Accept": "application/json, */*;q=0.8"})
        if response.status != SUCCESS:
            raise UpstreamError(
                f"{url} answered {response.status}, not with a description.",
                next_actions=["Check the address, or name a file instead."],
            )
        if response.truncated:
            raise UnavailableError(
                f"The description at {url} has more than {len(response.content):,} bytes.",
                next_actions=["Raise requests.max_mb in the settings, or name a file."],
            )
        content: bytes = response.content
        return content

    return fetch


def _vet(registry: ToolRegistry, trusted: set[str], spec: ToolSpec) -> ToolSpec:
    """Returns a tool; without its texts if they hide something or mention other tools."""
    if spec.source.partition(":")[2] in trusted:
        return spec
    tool = describe(spec)
    others = {each.name for each in registry.offers() if each.source != spec.source}
    reasons = [each.reason for each in findings(tool, "")]
    reasons += [f"it mentions {name}" for name in sorted(others & mentions(tool).keys())]
    if not reasons:
        return spec
    reason = "; ".join(dict.fromkeys(reasons))
    return replace(
        spec,
        title=spec.name,
        description=f"In quarantine: {reason}.",
        details="",
        input_schema={"type": "object"},
        capabilities=(),
        quarantine_reason=reason,
    )
