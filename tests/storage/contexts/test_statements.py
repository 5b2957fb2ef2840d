import json
from pathlib import Path
from typing import Any

import pytest

from storage.contexts.statements import statement_of


def _rows(name: str) -> list[dict[str, Any]]:
    lines = (Path(__file__).parent / "data" / name).read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


PAIRS = _rows("statements.jsonl")


def _ends(later: str, earlier: str) -> bool:
    said, before = statement_of(later), statement_of(earlier)
    return said is not None and before is not None and said.is_certain and said.ends(before)


def test_nothing_ends_what_holds_beside_it() -> None:
    beside = [pair for pair in PAIRS if not pair["replaces"]]
    assert len(beside) > 100
    assert [pair for pair in beside if _ends(pair["later"], pair["earlier"])] == []
    assert [pair for pair in beside if _ends(pair["earlier"], pair["later"])] == []


def test_most_new_values_of_measures_and_dates_end_the_old_ones() -> None:
    new = [pair for pair in PAIRS if pair["replaces"]]
    understood = [pair for pair in new if _ends(pair["later"], pair["earlier"])]
    assert len(understood) >= 37  # of 68: not of names, passwords, nor of "the flat"


@pytest.mark.parametrize("pair", _rows("newer.jsonl"), ids=lambda pair: pair["later"])
def test_a_sentence_ends_what_it_denies_or_changes_and_nothing_else(pair: dict[str, Any]) -> None:
    assert _ends(pair["later"], pair["earlier"]) == (pair["must"] == "superseded")
    assert not _ends(pair["earlier"], pair["earlier"])


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("I live in Berlin", "I moved from Berlin to Hamburg"),
        ("The user lives in Munich.", "The user moved from Munich to Oslo."),
        ("The user uses vim.", "The user switched from vim to Helix."),
        ("I use vim as my editor.", "I use Helix as my editor now instead of vim."),
        ("The user smokes.", "The user doesn't smoke any more."),
        ("Ben has a dog.", "Ben no longer has a dog."),
        ("The user no longer works at Siemens.", "The user works at Siemens again."),
        ("Sofia reports to Bob.", "Sofia reports to Alice now."),
        ("Anna lebt in Rom.", "Anna wohnt in Mailand."),
        ("Ich wohne in Bonn.", "Ich bin nach Kiel gezogen."),
        ("Der Nutzer wohnt in Köln.", "Seit 2024 wohnt der Nutzer in Aachen."),
        ("Ich esse Fleisch.", "Ich esse kein Fleisch mehr."),
        ("我住在北京。", "我搬到了上海。"),
        ("小明抽烟。", "小明已经不抽烟了。"),
        ("项目负责人是张伟。", "项目负责人现在改为李娜。"),
        ("The address of Anna is 5 Mill Lane.", "Anna's address is now 7 Elm Street."),
    ],
)
def test_another_wording_of_a_change_ends_a_statement_too(earlier: str, later: str) -> None:
    assert _ends(later, earlier)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("The user lives in Germany.", "The user lives in Berlin."),
        ("The user lives in a flat.", "The user lives in Berlin."),
        ("The user is allergic to nuts.", "The user is now allergic to milk."),
        ("The user is a nurse.", "The user is a mother now."),
        ("Max is German.", "Max is now Director."),
        ("Nora works on Heron.", "Nora now works on Osprey."),
        ("The user works from home.", "The user works for BMW now."),
        ("The user uses Postgres.", "The user uses Docker now."),
        ("Jens lives in Rome.", "Jen lives in Oslo now."),
        ("He lives in Rome.", "He lives in Oslo now."),
        ("Ann lives in Rome.", "Ann lives in Rome and Oslo now."),
        ("The user lives in Rome in summer.", "The user lives in Oslo in winter."),
        ("Der Nutzer wohnt in Bayern.", "Der Nutzer wohnt in München."),
        ("Der Nutzer wohnt in einer WG.", "Der Nutzer wohnt in Berlin."),
        ("Tom arbeitet an A.", "Tom arbeitet jetzt an B."),
        ("我住在中国。", "我住在北京。"),
        ("小明住在二楼。", "小明住在北京。"),
        ("他住在北京。", "他住在上海。"),
    ],
)
def test_what_can_hold_together_ends_neither(earlier: str, later: str) -> None:
    assert not _ends(later, earlier)
    assert not _ends(earlier, later)


@pytest.mark.parametrize(
    "text",
    [
        "Acme's API limit is 200. It was 100.",
        "Is the API limit of Acme 200?",
        "The API limit of Acme is 200, they say.",
        "The API limit of Acme was 200.",
        "If it rains, Ann now lives in Rome.",
        "",
        f"The API limit of Acme is {'9' * 200}.",
    ],
)
def test_what_says_more_or_less_is_no_statement(text: str) -> None:
    assert statement_of(text) is None
