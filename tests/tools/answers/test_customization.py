import json
from typing import Annotated, Any

import jsonschema  # type: ignore[import-untyped]  # it ships no types
import pytest
from pydantic import Field

from storage.directory.models import RESEARCHERS, Directory
from storage.retrieval.routing import Source
from tools.answers.customization import (
    LONGEST_DESCRIPTION,
    STANDARD_FILTERS,
    FilterArguments,
    customized,
    read_filters,
    with_enum,
)
from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.collections import Collections
from tools.core.errors import InvalidArgumentsError

DOCS = Source(
    name="product_docs",
    description="Manuals and release notes.",
    search_hints=("installation", "error codes"),
    supported_filters=("product", "version"),
)
MAIL = Source(name="mail", description="What was written", supported_filters=("product",))


def ask(
    query: Annotated[str, Field(description="The question")],
    source: Annotated[str | None, Field(max_length=64, description="Only in this")] = None,
    filters: Annotated[FilterArguments | None, Field(description="What narrows it")] = None,
    directory: Annotated[str, Field(max_length=64, description="Which")] = "researchers",
) -> str:
    """Searches all that is stored."""
    return f"{query} {source} {filters} {directory}"


ASK = FunctionToMCP.convert(ask)


def _properties(*sources: Source) -> dict[str, Any]:
    properties: dict[str, Any] = customized(ASK, Collections(sources=sources)).input_schema[
        "properties"
    ]
    return properties


def test_without_sources_any_metadata_may_be_asked_for() -> None:
    spec = customized(ASK, Collections())
    assert spec.description == ASK.description
    properties = spec.input_schema["properties"]
    assert list(properties) == ["query", "filters", "directory"]
    assert tuple(properties["filters"]["properties"]) == STANDARD_FILTERS
    assert "$ref" not in json.dumps(spec.input_schema)
    assert "$defs" not in spec.input_schema


def test_one_source_leaves_nothing_to_choose() -> None:
    spec = customized(ASK, Collections(sources=(DOCS,)))
    assert "source" not in spec.input_schema["properties"]
    assert spec.validate({"query": "x", "source": "product_docs"})["source"] == "product_docs"
    assert "product_docs: Manuals" in spec.description


def test_several_sources_are_an_enum_with_their_filters() -> None:
    properties = _properties(DOCS, MAIL)
    assert properties["source"] == {
        "type": "string",
        "enum": ["product_docs", "mail"],
        "description": "Only in this",
    }
    filters = properties["filters"]
    assert filters["additionalProperties"] is False
    assert filters["description"] == "What narrows it"
    assert list(filters["properties"])[:2] == ["product", "version"]
    assert filters["properties"]["product"]["description"] == "Metadata of product_docs, mail"
    assert filters["properties"]["version"]["description"] == "Metadata of product_docs"
    assert "metadata" not in filters["properties"]


def test_the_description_tells_how_to_ask_each_source() -> None:
    spec = customized(ASK, Collections(sources=(DOCS, MAIL)))
    assert spec.description == (
        "Searches all that is stored. Sources: product_docs: Manuals and release notes (ask it "
        "about: installation, error codes; filters: product, version). mail: What was written "
        "(filters: product)."
    )
    assert spec.details == ""


@pytest.mark.parametrize("count", [10, 40, 600])
def test_a_long_description_is_cut_and_told_whole_elsewhere(count: int) -> None:
    sources = tuple(
        Source(name=f"source_{number}", description=f"Papers of group {number} " + "and more " * 30)
        for number in range(count)
    )
    spec = customized(ASK, Collections(sources=sources))
    assert len(spec.description) <= LONGEST_DESCRIPTION
    assert spec.description.endswith("describe_tool explains each.")
    assert f"Papers of group {count - 1} " in spec.details
    if count <= 40:
        assert all(f"source_{number}" in spec.description for number in range(count))


@pytest.mark.parametrize("sources", [(), (DOCS,), (DOCS, MAIL)])
@pytest.mark.parametrize(
    "filters",
    [
        {"entities": ["Acme"], "kinds": ["document"], "raw_type": "file", "raw_id": "a"},
        {"time_range": {"start": 5, "end": "2026-01-01"}},
        {"product": "pump"},
        {"product": ["pump", 2, 2.5, True]},
        {"product": {"name": "pump"}},
        {"metadata": {"product": "pump"}},
        {"metadata": {"product": [1, {"name": "pump"}]}},
        {"other": 1},
    ],
)
def test_what_the_schema_lets_through_is_read(
    sources: tuple[Source, ...], filters: dict[str, Any]
) -> None:
    schema = customized(ASK, Collections(sources=sources)).input_schema
    arguments = {"query": "x", "filters": filters}
    fits = jsonschema.Draft202012Validator(schema).is_valid(arguments)
    try:
        read_filters(ASK.validate(arguments)["filters"], None, sources)
    except InvalidArgumentsError:
        assert not fits
    else:
        assert fits


def test_an_enum_keeps_what_is_said_of_its_parameter() -> None:
    spec = with_enum(ASK, "directory", ["researchers", "parts"])
    assert spec.input_schema["properties"]["directory"] == {
        "type": "string",
        "enum": ["researchers", "parts"],
        "description": "Which",
        "default": "researchers",
    }
    told = with_enum(ASK, "directory", ["parts"], "Of parts")
    assert told.input_schema["properties"]["directory"]["description"] == "Of parts"
    assert "enum" not in ASK.input_schema["properties"]["directory"]


def test_collections_are_found_by_name_or_those_there_are_named() -> None:
    parts = Directory(name="parts", noun="part")
    collections = Collections(sources=(DOCS, MAIL), directories=(RESEARCHERS, parts))
    assert collections.source("mail") is MAIL
    assert collections.directory("parts") is parts
    with pytest.raises(InvalidArgumentsError, match=r"'product_doc'.*product_docs, mail") as caught:
        collections.source("product_doc")
    assert caught.value.suggestions == ("product_docs",)
    with pytest.raises(InvalidArgumentsError, match="directory: 'people' is unknown"):
        collections.directory("people")
    with pytest.raises(InvalidArgumentsError, match="the settings name none"):
        Collections().source("mail")
