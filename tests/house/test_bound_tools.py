"""Every tool that can be told whose context it is about refuses anybody else's when it is bound."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

import tools
from server.app import App, build
from server.settings import Settings
from server.settings.safety import PolicySettings
from storage.models import Identity
from tools.conversion.schema_reading import resolve
from tools.core.context import Origin, RequestContext
from tools.core.discovery import discover
from tools.core.registry import ToolRegistry
from tools.core.spec import ToolSpec

MORE: Mapping[str, Mapping[str, Any]] = {
    "add_document": {"text": "A text.", "title": "Title"},
    "directory_filter": {"directory": "researchers", "field": "department"},
    "directory_items": {"directory": "researchers", "items": "publications", "year": 2021},
    "directory_search": {"directory": "researchers", "name": "Ada"},
    "forget": {"ids": ["0"]},
    "profile_entity_tool": {"entity_name": "Ada"},
    "publication_search": {"year": 2021},
    "researcher_search": {"researcher_name": "Ada"},
    "retrieve_profile_context": {"entity_name": "Ada"},
    "save_profile": {"summary": "Ann."},
}
"""What a call needs beside what its schema requires."""


def _named() -> list[ToolSpec]:
    registry = ToolRegistry()
    discover(registry, tools)
    return [spec for spec in registry.specs() if "user_id" in spec.input_schema["properties"]]


SPECS = _named()
BY_TOOL = pytest.mark.parametrize("spec", SPECS, ids=[spec.name for spec in SPECS])


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    place = tmp_path_factory.mktemp("bound")
    policy = PolicySettings(allow=("scope:context",))  # nobody is there to be asked
    app = build(Settings(data_dir=place / "data", root=place, policy=policy))
    yield app
    app.library.close()


def _arguments(spec: ToolSpec) -> dict[str, Any]:
    schema = spec.input_schema
    needed = {
        name: _value(resolve(schema["properties"][name], schema))
        for name in schema.get("required", ())
    }
    return {**needed, **MORE.get(spec.name, {})}


def _value(schema: Mapping[str, Any]) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return _value(schema["anyOf"][0])
    samples = {"string": "Ada", "integer": 1, "number": 1, "boolean": True, "object": {}}
    return ["Ada"] if schema["type"] == "array" else samples[schema["type"]]


@BY_TOOL
@pytest.mark.parametrize(
    "named", [{"user_id": "eve"}, {"user_id": "Ann"}, {"device_id": ""}, {"device_id": "desk"}]
)
async def test_nobody_else_can_be_named(app: App, spec: ToolSpec, named: dict[str, str]) -> None:
    bound = RequestContext(Origin(Identity("ann", device_id="phone"), bound=True))
    result = await app.manager.execute(spec.name, _arguments(spec) | named, bound)
    assert result.structured.get("error_type") == "permission_denied", result.text


@BY_TOOL
async def test_oneself_can_be_named(app: App, spec: ToolSpec) -> None:
    bound = RequestContext(Origin(Identity("ann", device_id="phone"), bound=True))
    named = {"user_id": "ann", "device_id": "phone", "agent_id": "coder"}
    result = await app.manager.execute(spec.name, _arguments(spec) | named, bound)
    assert result.structured.get("error_type") not in {"permission_denied", "invalid_arguments"}, (
        result.text
    )
