"""Each operation of descriptions of different makers, called; openapi-core judges what arrives."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest
from openapi_core import Config, OpenAPI
from openapi_core.exceptions import OpenAPIError
from openapi_core.testing import MockRequest

from tools.openapi.description import Description, operations_of

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:openapi_core"),
    pytest.mark.filterwarnings("ignore:Use of allowEmptyValue"),
]

DESCRIPTIONS = sorted(
    path for path in (Path(__file__).parent / "descriptions").iterdir() if path.suffix != ".md"
)
CONTENTS = {path: path.read_bytes() for path in DESCRIPTIONS}


@pytest.mark.parametrize("path", DESCRIPTIONS, ids=lambda path: path.stem)
async def test_what_each_tool_sends_is_what_the_description_wants(
    path: Path, open_crib: Callable[..., Any], site: Any
) -> None:
    description = Description.parse(CONTENTS[path])
    document = dict(description.document)
    base = f"http://{site.address}"
    judge = OpenAPI.from_dict(
        {**_here(document), "servers": [{"url": base}]},
        config=Config(spec_validator_cls=None),  # not all of them are what they should be
    )
    api = {"description": str(path), "url": base, "trusted": True}
    async with open_crib(
        openapi={"api": api}, requests__private=[site.address], policy__allow=["source:openapi:api"]
    ) as crib:
        (crib.root / "file.txt").write_text("content")
        await crib.app.apis.load()
        found = [spec for spec in crib.app.registry.specs() if spec.source == "openapi:api"]
        assert len(found) == len(operations_of(description))
        wrong = []
        for spec in found:
            for optional in (False, True):
                arguments = sample(spec.input_schema, spec.input_schema, optional=optional)
                arguments.pop("fields", None)
                before = len(site.asked)
                result = await crib.app.manager.execute(spec.name, arguments, crib.app.context)
                if len(site.asked) == before:
                    wrong.append(f"{spec.name}: {result.text}")
                    continue
                try:
                    judge.validate_request(_arrived(base, *site.asked[-1]))
                except OpenAPIError as error:
                    if not _is_multipart(error, site.asked[-1], arguments):
                        wrong.append(f"{spec.name}: {site.asked[-1]}: {error!r}{error.__cause__!r}")
        assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong)


def _is_multipart(error: OpenAPIError, asked: Any, arguments: Mapping[str, Any]) -> bool:
    """Whether the parts are those that were given: openapi-core has all of them for bytes."""
    parts = getattr(error.__cause__, "value", {})
    given = arguments.get("body", arguments)
    return b"form-data; name=" in asked[3] and bool(parts.keys() & given.keys())


def _here(value: Any) -> Any:
    """A description without other servers, and without credentials, which these tests have not."""
    if isinstance(value, list):
        return [_here(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _here(each)
        for key, each in value.items()
        if key not in {"security", "servers"} or not isinstance(each, list)
    }


def _arrived(
    base: str, method: str, target: str, headers: Mapping[str, str], body: bytes
) -> MockRequest:
    parts = urlsplit(target)
    given = {name.lower(): value for name, value in headers.items()}
    cookies = dict(parse_qsl(given.get("cookie", "").replace("; ", "&")))
    return MockRequest(
        base,
        method.lower(),
        parts.path,
        args=parse_qs(parts.query, keep_blank_values=True),
        headers=dict(headers),
        cookies=cookies,
        data=body or None,
        content_type=given.get("content-type", "application/json"),
    )


def sample(  # noqa: C901, PLR0911  # one case for each kind of schema
    schema: Mapping[str, Any], root: Mapping[str, Any], *, optional: bool, depth: int = 0
) -> Any:
    """A value that fits a schema, small or with what may be left out."""
    while "$ref" in schema:
        schema = root["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    for key in ("anyOf", "allOf"):
        if key in schema:
            parts = schema[key] if key == "allOf" else schema[key][:1]
            made = [sample(each, root, optional=optional, depth=depth + 1) for each in parts]
            if all(isinstance(each, dict) for each in made):
                own = {k: v for k, v in schema.items() if k != key}
                whole = _object(own, root, optional=optional, depth=depth)
                for each in made:
                    whole |= each
                return whole
            return made[0]
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kind = kind[0] if isinstance(kind, list) else kind
    match kind:
        case "object":
            return _object(schema, root, optional=optional, depth=depth)
        case "array":
            many = max(schema.get("minItems", 0), 1 if depth < 3 else 0)
            each = sample(schema.get("items", {}), root, optional=optional, depth=depth + 1)
            return [each] * many
        case "integer" | "number":
            return schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
        case "boolean":
            return True
        case "null":
            return None
    return _text(schema)


def _object(
    schema: Mapping[str, Any], root: Mapping[str, Any], *, optional: bool, depth: int
) -> dict[str, Any]:
    required = schema.get("required", ())
    return {
        name: sample(each, root, optional=optional, depth=depth + 1)
        for name, each in schema.get("properties", {}).items()
        if name in required or (optional and depth < 3)
    }


FORMATS = {
    "date": "2026-03-31",
    "date-time": "2026-03-31T12:00:00Z",
    "email": "a@example.org",
    "uri": "https://example.org/",
    "uuid": "3fa85f64-5717-4562-b3fc-2c963f66afa6",
}


def _text(schema: Mapping[str, Any]) -> str:
    if str(schema.get("description", "")).startswith("Path"):
        return "file.txt"
    text = FORMATS.get(schema.get("format", ""), "a b/c&d=ü")
    if "pattern" in schema:
        text = "a"
    return text.ljust(schema.get("minLength", 0), "x")[: schema.get("maxLength", 1000)]
