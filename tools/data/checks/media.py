"""Images, sounds and videos that rows name: which operators read them, and what limits these."""

from __future__ import annotations

from collections.abc import Iterator

from tools.core.errors import InvalidArgumentsError
from tools.data.catalogue.catalogue import Catalogue
from tools.data.recipe import Recipe, Step
from tools.data.worker.agreed import media_folder

_TAGS = {"image", "audio", "video"}

_BY_PROGRAM = {"aggregator", "grouper"}
"""Kinds of operators that `dj-process` runs, which is given no such files."""


def media_steps(recipe: Recipe, catalogue: Catalogue) -> list[Step]:
    """The operators of a recipe that read files which rows name."""
    known = catalogue.operators
    return [
        step
        for step in recipe.process.operators
        if step.name in known and _TAGS.intersection(known[step.name].tags)
    ]


def media_limits(recipe: Recipe, catalogue: Catalogue) -> Iterator[InvalidArgumentsError]:
    """Why `apply_recipe` does not run a recipe whose operators read such files."""
    folder = media_folder(recipe.dataset.export_path)
    for step in media_steps(recipe, catalogue):
        if recipe.on_cluster:
            executor = recipe.system.executor_type
            yield InvalidArgumentsError(
                f"executor_type: {executor} does not get the files that {step.name} reads.",
                next_actions=["Run it with executor_type: default."],
            )
        for what in _by_program(recipe, catalogue):
            yield InvalidArgumentsError(
                f"{step.name} reads files that rows name, which a recipe with {what} is not given.",
                next_actions=["Leave that out."],
            )
        for name, value in step.params.items():
            if name.endswith("_dir") and value != folder:
                yield InvalidArgumentsError(
                    f"{step.name}.{name}: new files are written to a folder beside the result.",
                    suggestions=[folder],
                    next_actions=[f"Give that folder as {name}, or leave it out."],
                )


def media_warnings(recipe: Recipe, catalogue: Catalogue) -> Iterator[str]:
    """What is to be known of such a recipe before it runs."""
    steps = media_steps(recipe, catalogue)
    refused = [f"`apply_recipe` refuses this: {each}" for each in media_limits(recipe, catalogue)]
    yield from refused
    if steps and not refused:
        names = ", ".join(dict.fromkeys(f"`{step.name}`" for step in steps))
        yield f"A run that does not succeed begins anew, because of the files for {names}."


def _by_program(recipe: Recipe, catalogue: Catalogue) -> Iterator[str]:
    """What a recipe has for which `dj-process` has to run it, as far as that is known here."""
    if len(recipe.dataset.paths) > 1:
        yield "several sources"
    if recipe.process.custom_operator_paths:
        yield "operators of your own"
    for step in recipe.process.operators:
        operator = catalogue.operators.get(step.name)
        if operator is not None and operator.type in _BY_PROGRAM:
            yield f"{step.name} ({operator.type})"
