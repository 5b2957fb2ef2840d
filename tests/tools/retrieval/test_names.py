import pytest

from tools.retrieval.models import ToolRecord
from tools.retrieval.names import Mentions, Names

NAMES = (
    *("web_search", "mail__send_email", "getCurrentWeather", "calculator", "now", "todo", "search"),
)


@pytest.fixture
def names() -> Names:
    names = Names()
    for slot, name in enumerate(NAMES):
        server = "mail" if name.startswith("mail__") else ""
        names.add(slot, ToolRecord(tool_id=f"{slot}", name=name, server=server))
    return names


def test_what_comes_from_files_is_not_named_by_that() -> None:
    names = Names()
    names.add(0, ToolRecord(tool_id="file:send_email", name="Send Email"))
    assert names.mentioned("file") == Mentions()
    assert names.mentioned("send").begun == {0: None}


def _shown(slots: dict[int, None]) -> list[str]:
    return [NAMES[slot] for slot in slots]


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("web_search", ["web_search"]),
        ("please use WebSearch for this", ["web_search"]),
        ("a web search about herons", ["web_search"]),
        ("try web-search.", ["web_search"]),
        ("call `calculator` with 3", ["calculator"]),
        ("mail.send_email", ["mail__send_email"]),
        ("mail/send_email it to Ann", ["mail__send_email"]),
        ("mcp__mail__send_email it to Ann", ["mail__send_email"]),
        ("send_email, then getCurrentWeather", ["mail__send_email", "getCurrentWeather"]),
        ("get current weather", ["getCurrentWeather"]),
        ("calculator and todo", ["calculator", "todo"]),
        ("NOW", ["now"]),
        ("what is the weather right now", []),
        ("help me search for shoes", []),
        ("", []),
    ],
)
def test_names_are_known_however_they_are_written(
    names: Names, query: str, named: list[str]
) -> None:
    assert _shown(names.mentioned(query).named) == named


def test_a_word_of_a_sentence_that_is_a_name_is_noted_in_passing(names: Names) -> None:
    assert names.mentioned("a calculator for my taxes").passing == [[NAMES.index("calculator")]]


@pytest.mark.parametrize(
    ("query", "begun"),
    [
        ("get_curr", ["getCurrentWeather"]),
        ("mail__", ["mail__send_email"]),
        ("web", ["web_search"]),
        ("is there send_em or so", ["mail__send_email"]),
        ("is it mail__s, mail__send or mail__", ["mail__send_email"]),
        ("calculate my taxes", []),
    ],
)
def test_the_beginning_of_a_name_is_enough(names: Names, query: str, begun: list[str]) -> None:
    assert _shown(names.mentioned(query).begun) == begun


def test_what_is_removed_is_not_named(names: Names) -> None:
    for slot, name in enumerate(NAMES):
        server = "mail" if name.startswith("mail__") else ""
        names.remove(slot, ToolRecord(tool_id=f"{slot}", name=name, server=server))
    assert all(names.mentioned(name) == Mentions() for name in NAMES)
