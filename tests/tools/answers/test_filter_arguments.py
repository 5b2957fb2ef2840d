from contextlib import suppress
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from storage.models import ContextType, SearchFilter, TimeRange
from storage.retrieval.routing import Source
from tools.answers.customization import (
    STANDARD_FILTERS,
    FilterArguments,
    read_filters,
    supported_filters,
)
from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.errors import InvalidArgumentsError

DOCS = Source(name="docs", supported_filters=("product", "version"))
MAIL = Source(name="mail", supported_filters=("product", "sender"))
BARE = Source(name="bare")


def ask(
    filters: Annotated[FilterArguments | None, Field(description="What narrows it")] = None,
) -> str:
    """Asks."""
    return str(filters)


ASK = FunctionToMCP.convert(ask)


def read(
    filters: dict[str, Any] | None, source: Source | None = None, *sources: Source
) -> SearchFilter:
    checked: FilterArguments | None = ASK.validate({"filters": filters})["filters"]
    return SearchFilter() if checked is None else read_filters(checked, source, sources)


def refused(filters: dict[str, Any], *sources: Source, source: Source | None = None) -> str:
    with pytest.raises(InvalidArgumentsError) as caught:
        read(filters, source, *sources)
    return " ".join((caught.value.message, *caught.value.suggestions, *caught.value.next_actions))


def test_no_filters_narrow_nothing() -> None:
    assert read(None) == read({}) == read({"entities": [], "metadata": {}}) == SearchFilter()


def test_the_standard_filters_are_there_with_and_without_sources() -> None:
    given_filters = {
        "entities": ["Zoë Müller", "Acme"],
        "time_range": {"start": 0, "end": 10},
        "kinds": ["document", "event"],
        "raw_type": "file",
        "raw_id": "docs/a.md",
    }
    criteria = SearchFilter(
        entities=("Zoë Müller", "Acme"),
        time_range=TimeRange(0, 10),
        context_types=(ContextType.DOCUMENT, ContextType.EVENT),
        raw_types=("file",),
        raw_id="docs/a.md",
    )
    assert read(given_filters) == criteria
    assert read(given_filters, None, DOCS) == criteria
    assert read(given_filters, BARE, BARE) == criteria


def test_one_value_stands_for_a_list_of_one() -> None:
    assert read({"kinds": "document", "entities": "Acme"}) == SearchFilter(
        context_types=(ContextType.DOCUMENT,), entities=("Acme",)
    )


@pytest.mark.parametrize(
    ("value", "labels"),
    [
        ("pump", ("pump",)),
        (["pump", "valve", "pump"], ("pump", "valve")),
        (2, ("2",)),
        (2.0, ("2",)),
        (True, ("true",)),
        ([1, "1", False, None], ("1", "false")),
    ],
)
def test_values_are_asked_as_they_are_labelled(value: object, labels: tuple[str, ...]) -> None:
    criteria = SearchFilter(labels=(("product", labels),))
    assert read({"metadata": {"product": value}}) == criteria
    assert read({"product": value}, DOCS, DOCS, MAIL) == criteria
    assert read({"product": value}, None, DOCS, MAIL) == criteria


@pytest.mark.parametrize("value", [None, [], [None]])
def test_what_names_no_value_narrows_nothing(value: object) -> None:
    assert read({"product": value}, None, DOCS) == SearchFilter()
    assert read({"metadata": {"product": value}}) == SearchFilter()


@pytest.mark.parametrize("value", [{"a": 1}, [["a"]], "x" * 257])
def test_a_value_that_is_no_plain_one_is_named(value: object) -> None:
    for message in (refused({"product": value}, DOCS), refused({"metadata": {"product": value}})):
        assert "product: " in message
        assert "a text of up to 256 characters" in message


def test_an_unknown_key_is_named_with_the_nearest_and_all() -> None:
    message = refused({"prodct": "pump"}, DOCS, MAIL)
    assert "`filters.prodct` is unknown; did you mean `filters.product`?" in message
    for key in ("product", "version", "sender", "entities", "time_range", "kinds", "raw_type"):
        assert key in message
    assert "metadata" not in message
    message = refused({"product": "pump"})
    assert "`filters.product` is unknown" in message
    assert "into filters.metadata" in message


def test_a_key_of_another_source_is_none_of_this_one() -> None:
    message = refused({"sender": "una"}, DOCS, MAIL, source=DOCS)
    assert "`filters.sender` is not a filter of the source 'docs'" in message
    assert "product, version, entities" in message
    assert "`filters.product`" in refused({"product": "x"}, DOCS, BARE, source=BARE)


def test_where_there_are_sources_only_what_they_support_is_metadata() -> None:
    assert "`filters.metadata` is unknown" in refused({"metadata": {"product": "x"}}, DOCS)


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        ({"kinds": ["documents"]}, "did you mean 'document'?"),
        ({"entities": [1]}, "`filters.entities[0]`"),
        ({"time_range": {"from": 1}}, "`filters.time_range.from`"),
        ({"time_range": {"start": 2, "end": 1}}, "is after"),
        ({"raw_type": ""}, "`filters.raw_type`"),
        ({"metadata": "product"}, "`filters.metadata`"),
    ],
)
def test_a_wrong_standard_filter_is_named(filters: dict[str, Any], said: str) -> None:
    assert said in refused(filters)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(
    filters=st.dictionaries(
        st.sampled_from([*STANDARD_FILTERS, "product", "sender"]) | st.text(), json_values
    ),
    source=st.sampled_from([None, DOCS, BARE]),
    configured=st.booleans(),
)
def test_any_filters_are_read_or_refused(
    filters: dict[str, Any], source: Source | None, configured: bool
) -> None:
    sources = (DOCS, MAIL, BARE) if configured else ()
    with suppress(InvalidArgumentsError):
        criteria = read(filters, source if configured else None, *sources)
        asked = {key for key, _ in criteria.labels}
        assert asked <= set(
            supported_filters(sources) if configured else filters.get("metadata") or ()
        )


def test_supported_filters_tell_whose_they_are() -> None:
    assert supported_filters([DOCS, BARE, MAIL]) == {
        "product": ["docs", "mail"],
        "version": ["docs"],
        "sender": ["mail"],
    }
