"""Images, sounds and videos that rows name: which operators read them, and what limits these."""

from __future__ import annotations

from collections.abc import Iterator

from tools.core.errors import InvalidArgumentsError
from tools.data.catalogue.catalogue import Catalogue
from tools.data.recipe import Recipe, Step
from tools.data.worker.agreed import media_folder


def media_steps(recipe: Recipe, catalogue: Catalogue) -> list[Step]:
    """Returns the steps of a recipe that read files which rows name."""
    known = catalogue.operators
    return [
        step
        for step in recipe.process.operators
        if step.name in known and {"image", "audio", "video"}.intersection(known[step.name].tags)
    ]


def media_limits(recipe: Recipe, catalogue: Catalogue) -> Iterator[InvalidArgumentsError]:
    """Yields why `apply_recipe` does not run a recipe whose operators read such files."""
    folder = media_folder(recipe.dataset.export_path)
    known, executor = catalogue.operators, recipe.system.executor_type
    by_program = ["several sources"] if len(recipe.dataset.paths) > 1 else []
    for step in recipe.process.operators:
        kind = known[step.name].type if step.name in known else ""
        if kind in {"aggregator", "grouper"}:
            by_program.append(f"{step.name} ({kind})")
    for step in media_steps(recipe, catalogue):
        if recipe.on_cluster:
            yield InvalidArgumentsError(
                f"executor_type: {executor} does not get the files that {step.name} reads.",
                next_actions=["Run it with executor_type: default."],
            )
        for what in by_program:  # `dj-process` runs it, and gets no such files
            yield InvalidArgumentsError(
                f"{step.name} reads files that rows name, which a recipe with {what} is not given.",
                next_actions=["Leave that out."],
            )
        for name, value in step.params.items():
            if name.endswith("_dir") and value != folder:
                yield InvalidArgumentsError(
                    f"{step.name}.{name}: new files are written to a folder next to the result.",
                    suggestions=[folder],
                    next_actions=[f"Give that folder as {name}, or leave it out."],
                )


def media_warnings(recipe: Recipe, catalogue: Catalogue) -> Iterator[str]:
    """Yields what the user should know about such a recipe before it runs."""
    refused = [f"`apply_recipe` refuses this: {each}" for each in media_limits(recipe, catalogue)]
    yield from refused
    steps = dict.fromkeys(f"`{step.name}`" for step in media_steps(recipe, catalogue))
    if steps and not refused:
        names = ", ".join(steps)
        yield f"A run that fails starts from the beginning, because of the files for {names}."
