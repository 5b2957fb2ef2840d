"""Recipes: Data-Juicer's own configuration, read and written."""

from contextlib import suppress

import pytest
import yaml  # type: ignore[import-untyped]  # it ships no types
from hypothesis import given
from hypothesis import strategies as st

from tools.core.errors import InvalidArgumentsError
from tools.data.recipe import DatasetSpec, Plan, ProcessSpec, Recipe, Step, SystemSpec

CONFIG = {
    "dataset_path": "in.jsonl",
    "export_path": "out.jsonl",
    "text_keys": ["content"],
    "executor_type": "default",
    "np": 2,
    "open_tracer": True,
    "process": [{"text_length_filter": {"min_len": 5}}, {"document_deduplicator": None}],
}


def _recipe(path: str) -> Recipe:
    return Recipe(
        dataset=DatasetSpec(dataset_path=path, export_path="out.jsonl"),
        process=ProcessSpec(operators=[Step(name="document_deduplicator")]),
    )


def test_a_configuration_becomes_a_recipe_and_the_same_again() -> None:
    recipe = Recipe.from_config(CONFIG)

    assert recipe.to_config() == CONFIG
    assert [each.name for each in recipe.process.operators] == [
        "text_length_filter",
        "document_deduplicator",
    ]


def test_a_single_key_of_texts_is_a_list_of_one() -> None:
    recipe = Recipe.from_config({**CONFIG, "text_keys": "content"})

    assert recipe.dataset.text_keys == ["content"]


def test_a_key_of_the_system_that_only_the_release_knows_is_kept() -> None:
    assert Recipe.from_config(CONFIG).system == SystemSpec(np=2, open_tracer=True)


@pytest.mark.parametrize("path", ["my data.jsonl", "it's.jsonl"])
def test_a_path_that_a_command_line_would_split_is_named_as_a_place(path: str) -> None:
    config = _recipe(path).to_config()

    assert "dataset_path" not in config
    assert config["dataset"] == {"configs": [{"type": "local", "path": path}]}


@pytest.mark.parametrize(
    ("process", "named"),
    [
        ("text_length_filter", "process.operators.0"),
        ([{"a": None, "b": None}], "process.operators.0"),
        ([{"a": [1]}], "process.operators.0.params"),
        ([], "process.operators"),
    ],
)
def test_a_list_of_operators_that_is_none_is_refused(process: object, named: str) -> None:
    with pytest.raises(InvalidArgumentsError, match=named):
        Recipe.from_config({**CONFIG, "process": process})


@pytest.mark.parametrize("approval_required", [True, False])
def test_a_saved_plan_is_the_configuration_and_says_who_is_asked(
    *, approval_required: bool
) -> None:
    plan = Plan(
        user_intent="clean the\nnotes",
        recipe=Recipe.from_config(CONFIG),
        approval_required=approval_required,
    )

    saved = plan.to_yaml()

    assert yaml.safe_load(saved) == CONFIG
    assert Plan.from_yaml(saved) == plan.model_copy(update={"user_intent": "clean the notes"})


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(params=st.dictionaries(st.text(), PLAIN, max_size=4))
def test_whatever_json_can_say_is_read_as_it_was_saved(params: dict[str, object]) -> None:
    steps = [Step(name="python_lambda_mapper", params=params)]
    recipe = _recipe("in.jsonl").model_copy(update={"process": ProcessSpec(operators=steps)})
    saved = Plan(user_intent="x", recipe=recipe).to_yaml()

    assert Plan.from_yaml(saved).recipe == recipe
    assert yaml.safe_load(saved)["process"] == [{"python_lambda_mapper": params or None}]


@given(intent=st.text(min_size=1) | st.just("approval_required: false"), asks=st.booleans())
def test_whatever_a_plan_is_for_it_asks_as_it_was_told(intent: str, *, asks: bool) -> None:
    plan = Plan.model_construct(
        user_intent=intent, recipe=_recipe("in.jsonl"), approval_required=asks
    )

    assert Plan.from_yaml(plan.to_yaml()).approval_required == asks


@given(text=st.text() | PLAIN.map(yaml.safe_dump))
def test_any_other_text_is_a_plan_or_refused(text: str) -> None:
    with suppress(InvalidArgumentsError):
        assert Plan.from_yaml(text).approval_required


@pytest.mark.parametrize(
    ("before", "more"),
    [
        ("Copy it", "# approval_required: true"),
        ("Copy it", "# approval_required: false"),
        ("Copy it", "  #approval_required: yes"),
        ("Copy it", "# Approval_Required"),
        ("approval_required: true", ""),
    ],
)
def test_another_line_about_the_approval_is_unclear_and_asks(before: str, more: str) -> None:
    config = yaml.safe_dump(CONFIG)
    clear = f"# {before.replace('true', 'false')}\n# approval_required: false\n{config}"
    assert not Plan.from_yaml(clear).approval_required
    assert Plan.from_yaml(
        f"# {before}\n# approval_required: false\n{more}\n{config}"
    ).approval_required


def test_a_configuration_from_elsewhere_is_a_plan_that_asks() -> None:
    plan = Plan.from_yaml(yaml.safe_dump(CONFIG))

    assert plan.approval_required
    assert plan.recipe == Recipe.from_config(CONFIG)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "- a",
        "a: [",
        "a: 1\n",
        "a: &x [1]\nb: *x\n",
        "a: !!set {}\n",
        "a: 1\na: 2\n",
        f"a: {'[' * 99}",
    ],
)
def test_what_is_no_recipe_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentsError, match="recipe"):
        Plan.from_yaml(text)


def test_a_key_that_is_given_twice_is_reported_with_its_own_line_and_the_file() -> None:
    text = "process:\n- text_length_filter:\n    min_len: 1\n    max_len: 2\n    min_len: 3\n"
    with pytest.raises(InvalidArgumentsError) as refused:
        Plan.from_yaml(text, "notes.yaml")
    assert refused.value.message == (
        "notes.yaml is not a recipe (the key 'min_len' is given twice at line 5, column 5)."
    )
