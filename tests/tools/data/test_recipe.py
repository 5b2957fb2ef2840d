"""Recipes: Data-Juicer's own configuration, read and written."""

from __future__ import annotations

import pytest
import yaml  # type: ignore[import-untyped]  # it ships no types

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


def test_a_configuration_from_elsewhere_is_a_plan_that_asks() -> None:
    plan = Plan.from_yaml(yaml.safe_dump(CONFIG))

    assert plan.approval_required
    assert plan.recipe == Recipe.from_config(CONFIG)


@pytest.mark.parametrize("text", ["", "- a", "a: [", "a: 1\n"])
def test_what_is_no_recipe_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentsError, match="recipe"):
        Plan.from_yaml(text)
