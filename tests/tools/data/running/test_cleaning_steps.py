import pytest

from tools.data.running.cleaning import cleaning_steps

PROSE = "The bowline makes a loop at the end of a rope that does not slip."


@pytest.mark.parametrize(
    ("texts", "has", "lacks"),
    [
        ([PROSE], "character_repetition_filter", "clean_html_mapper"),
        ([PROSE, f"<p>{PROSE}</p>"], "clean_html_mapper", None),
        ([PROSE, *["a < b > c"] * 9], "alphanumeric_filter", "clean_html_mapper"),
        (["A title", "Another"], "alphanumeric_filter", "character_repetition_filter"),
    ],
)
def test_the_recipe_follows_from_how_the_texts_look(
    texts: list[str], has: str, lacks: str | None
) -> None:
    names = [step.name for step in cleaning_steps(texts)]
    assert has in names
    assert lacks not in names


def test_short_texts_stay_where_short_ones_are_what_there_is() -> None:
    (titles,) = [each for each in cleaning_steps(["A title"]) if each.name == "text_length_filter"]
    (prose,) = [each for each in cleaning_steps([PROSE]) if each.name == "text_length_filter"]
    assert titles.params["min_len"] < prose.params["min_len"]
