import json
import re

import pytest

from tests.server.cli.conftest import Command

SCORES = re.compile(r"score (\d\.\d{3})   dense (\S+)   lexical (\d+\.\d\d)   matched (.*)")


def test_a_hit_shows_its_source_its_scores_and_the_matched_words(cli: Command) -> None:
    cli("import", "notes")
    ended = cli("query", "how to tie knots that do not slip")
    assert ended.code == 0
    lines = [line.strip() for line in ended.out.splitlines()]
    assert lines[0] == "1  Sailing > Knots"
    assert lines[1] == "notes/sailing.md"
    found = SCORES.fullmatch(lines[2])
    assert found
    assert float(found[1]) > 0.9
    assert found[4] == "knots, slip"
    assert "bowline" in lines[3]
    assert max(map(len, lines)) <= 80


def test_json_is_the_tools_own_result(cli: Command) -> None:
    cli("import", "notes")
    found = json.loads(cli("query", "tomatoes", "--json", "--top-k", "1").out)
    assert [hit["raw_id"] for hit in found["hits"]] == ["notes/it's 🍅 [red].txt"]
    assert found["mode"] == "hybrid"
    assert found["coverage"] == {"total": 3, "embedded": 3, "problem": ""}


def test_an_empty_library_says_so(cli: Command) -> None:
    assert cli("query", "anything").out == "Nothing is stored yet.\n"


@pytest.mark.parametrize("text", ["", "x" * 10_001])
def test_a_question_that_cannot_be_asked_is_exit_code_1(cli: Command, text: str) -> None:
    ended = cli("query", text)
    assert (ended.code, ended.out) == (1, "")
    assert "`query`" in ended.err


def test_a_number_of_results_out_of_range_is_a_wrong_usage(cli: Command) -> None:
    assert cli("query", "knots", "--top-k", "0").code == 2


def test_scope_layer_source_and_filters_narrow(cli: Command) -> None:
    cli("import", "notes")
    cli("call", "remember", "content=Bowline knots hold.")
    both = cli("query", "knots").out
    assert "memory l2" in both
    assert "notes/sailing.md" in both
    for given, found, looked in (
        (("--scope", "memory"), "memory l2", "Looked in memory: as asked."),
        (("--layer", "l2"), "memory l2", "Looked in memory: l2 is a layer of memory."),
        (("--scope", "knowledge"), "notes/sailing.md", "Looked in knowledge: as asked."),
        (("--filter", "kinds=document"), "notes/sailing.md", ""),
    ):
        out = cli("query", "knots", *given).out
        assert found in out
        assert looked in out
        assert ("memory l2" in out) != ("notes/sailing.md" in out)
    nothing = cli("query", "knots", "--filter", "author=Ann", "--filter", "author=Bob")
    assert "Looked in knowledge: filtered by metadata." in nothing.out
    assert "Nothing fits." in nothing.out


@pytest.mark.parametrize("pair", ["author", "=Ann", ""])
def test_a_filter_that_is_no_pair_is_a_wrong_usage(cli: Command, pair: str) -> None:
    assert cli("query", "knots", "--filter", pair).code == 2


def test_an_unknown_source_is_told_those_that_there_are(cli: Command) -> None:
    ended = cli("query", "knots", "--source", "manuals")
    assert ended.code == 1
    assert "the settings name none" in ended.err
