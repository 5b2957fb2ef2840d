from typing import Any

import pytest

from tools.core.errors import InvalidArgumentsError
from tools.openapi.encoding import Parameter

LIST = ["blue", "black", "brown"]
OBJECT = {"R": 100, "G": 200}


def _parameter(place: str, style: str, *, explode: bool) -> Parameter:
    return Parameter.of({"name": "color", "in": place, "style": style, "explode": explode})


@pytest.mark.parametrize(
    ("style", "explode", "value", "written"),
    [
        # The table of OpenAPI 3.1.1, "Style Examples".
        ("matrix", False, "blue", ";color=blue"),
        ("matrix", False, LIST, ";color=blue,black,brown"),
        ("matrix", False, OBJECT, ";color=R,100,G,200"),
        ("matrix", True, "blue", ";color=blue"),
        ("matrix", True, LIST, ";color=blue;color=black;color=brown"),
        ("matrix", True, OBJECT, ";R=100;G=200"),
        ("label", False, "blue", ".blue"),
        ("label", False, LIST, ".blue,black,brown"),
        ("label", False, OBJECT, ".R,100,G,200"),
        ("label", True, LIST, ".blue.black.brown"),
        ("label", True, OBJECT, ".R=100.G=200"),
        ("simple", False, "blue", "blue"),
        ("simple", False, LIST, "blue,black,brown"),
        ("simple", False, OBJECT, "R,100,G,200"),
        ("simple", True, OBJECT, "R=100,G=200"),
    ],
)
def test_a_value_in_the_path_is_written_in_its_style(
    style: str, explode: bool, value: Any, written: str
) -> None:
    assert _parameter("path", style, explode=explode).in_path(value) == written


@pytest.mark.parametrize(
    ("style", "explode", "value", "written"),
    [
        ("form", True, LIST, "color=blue&color=black&color=brown"),
        ("form", True, OBJECT, "R=100&G=200"),
        ("form", False, LIST, "color=blue,black,brown"),
        ("form", False, OBJECT, "color=R,100,G,200"),
        ("form", True, "", "color="),
        ("form", True, True, "color=true"),
        ("form", True, 2.0, "color=2"),
        ("form", True, "a&b=c d+e%", "color=a%26b%3Dc%20d%2Be%25"),
        ("spaceDelimited", False, LIST, "color=blue%20black%20brown"),
        ("pipeDelimited", False, LIST, "color=blue%7Cblack%7Cbrown"),
        ("pipeDelimited", True, LIST, "color=blue&color=black&color=brown"),
        ("deepObject", True, OBJECT, "color[R]=100&color[G]=200"),
        ("deepObject", True, {"a": {"b": [1, 2]}}, "color[a][b][0]=1&color[a][b][1]=2"),
        ("deepObject", True, {"a]=1&x": 1}, "color[a%5D%3D1%26x]=1"),
    ],
)
def test_a_value_in_the_query_is_written_in_its_style(
    style: str, explode: bool, value: Any, written: str
) -> None:
    found = _parameter("query", style, explode=explode).in_query(value)
    assert "&".join(f"{name}={text}" for name, text in found) == written


def test_reserved_characters_stay_where_that_is_allowed_but_end_no_value() -> None:
    given = {"name": "a", "in": "query", "allowReserved": True}
    assert list(Parameter.of(given).in_query("x/y?z&b=1#c")) == [("a", "x/y?z%26b%3D1%23c")]


def test_a_parameter_with_content_is_json() -> None:
    given = {"name": "a", "in": "query", "content": {"application/json": {"schema": {}}}}
    assert list(Parameter.of(given).in_query({"b": 1})) == [("a", "%7B%22b%22%3A%201%7D")]


def test_a_list_in_a_header_is_joined_by_commas() -> None:
    assert _parameter("header", "simple", explode=False).in_header([1, "a"]) == "1,a"
    assert _parameter("header", "simple", explode=True).in_header({"a": 1}) == "a=1"


def test_half_of_a_character_is_refused() -> None:
    with pytest.raises(InvalidArgumentsError, match="unpaired surrogate"):
        list(_parameter("query", "form", explode=True).in_query("\ud800"))
