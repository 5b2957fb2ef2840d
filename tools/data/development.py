"""Operators of one's own: their first files, and a trial of them."""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Iterator, Mapping
from functools import partial
from importlib.resources import files
from pathlib import PurePosixPath
from string import Template
from typing import Annotated, Literal

import anyio.to_thread
from pydantic import Field

from tools.core.context import RequestContext
from tools.core.errors import ConflictError, InvalidArgumentsError, NotFoundError, ToolError
from tools.core.result import OmitNone, ToolModel
from tools.core.spec import Effect, Subject, SubjectKind, ToolScope, tool
from tools.data.catalogue.catalogue import bundled
from tools.data.recipe import Recipe
from tools.sandbox.files.replace import EXPECT_ABSENT
from tools.sandbox.files.sandbox import Sandbox
from tools.sandbox.files.text_files import FilePath

OwnKind = Literal["mapper", "filter", "deduplicator", "selector"]
TRIAL_SECONDS = 240.0

_TEMPLATES = {
    "$name.py": "$kind.txt",
    "test_$name.py": "test_$kind.txt",
    "samples.jsonl": "samples.jsonl",
    "README.md": "readme.txt",
}
"""Templates of an operator's files."""

_NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")


class DevelopedOperator(ToolModel):
    """The first files of an operator.

    Attributes:
        operator_name: Its name in a recipe.
        class_name: The name of its class.
        files: Its files, relative to the root.
        checked: "syntax", or "run" where Data-Juicer ran it on its samples.
        failure: Why that run failed; absent where it did not, or was not asked for.
    """

    operator_name: str
    class_name: str
    files: list[str]
    checked: str
    failure: OmitNone[str] = None

    def to_text(self) -> str:
        """Says which files there are, and what comes next."""
        operator, *others = self.files
        checks = {
            "run": "Data-Juicer ran it on its samples.",
            "syntax": "Its syntax was checked, and no more: smoke_check has Data-Juicer run it.",
        }
        check = f"The trial failed: {self.failure}" if self.failure else checks[self.checked]
        return (
            f"Wrote {operator}, with {', '.join(others)}. {check}\n"
            f"Next: put in what {self.operator_name} is to do, and name {operator} in "
            "custom_operator_paths of a process spec."
        )


@tool(
    scope=ToolScope.SYSTEM,
    effects={Effect.WRITE, Effect.EXECUTE},
    tags=("data", "operators"),
    capabilities=("begin an operator of one's own for Data-Juicer",),
    timeout=TRIAL_SECONDS + 60,
    may_become_job=True,
    in_cell=True,
    subject=Subject(SubjectKind.PATH, "output_dir"),
)
async def develop_operator(
    context: RequestContext,
    intent: Annotated[str, Field(max_length=1_000, pattern=r"\S", description="What it is to do")],
    operator_name: Annotated[
        str, Field(min_length=1, max_length=64, description="Such as fix_dates_mapper")
    ],
    output_dir: Annotated[FilePath, Field(description="Directory for its files")],
    operator_type: Annotated[OwnKind, Field(description="What kind it is of")] = "mapper",
    smoke_check: Annotated[
        bool, Field(description="Have Data-Juicer run it on its samples")
    ] = False,
) -> DevelopedOperator:
    """Begins an operator of your own: a file that runs, its test, samples and a README."""
    folder = PurePosixPath(context.sandbox.relative(output_dir))
    name = _full_name(operator_name, operator_type)
    words = {
        "name": name,
        "cls": "".join(each.capitalize() for each in name.split("_")),
        "kind": operator_type,
        "path": str(folder / f"{name}.py"),
        "intent": " ".join(intent.split()),
        "version": bundled().version,
    }
    texts = {str(folder / file): text for file, text in _fill_templates(words)}
    if smoke_check:
        from tools.data.running.workers import workers_of

        (await workers_of(context.machine)).check()  # before anything is written
    await anyio.to_thread.run_sync(partial(_write, texts, context.sandbox))
    failure = await _try(name, folder, context) if smoke_check else None
    return DevelopedOperator(
        operator_name=name,
        class_name=words["cls"],
        files=list(texts),
        checked="run" if smoke_check and failure is None else "syntax",
        failure=failure,
    )


def _full_name(name: str, kind: OwnKind) -> str:
    """Returns the name with its kind at the end, as all operators have it."""
    full = name if name.endswith(f"_{kind}") else f"{name}_{kind}"
    if not _NAME.fullmatch(full) or keyword.iskeyword(full):
        raise InvalidArgumentsError(
            f"operator_name: {name!r} is not a name of an operator.",
            next_actions=["Give lower-case words with underscores, such as fix_dates_mapper."],
        )
    if full in bundled().operators:
        raise ConflictError(
            f"Data-Juicer {bundled().version} has an operator {full}.",
            next_actions=["See it with get_operator_info, or give another name."],
        )
    return full


def _fill_templates(words: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yields the name and the text of each file, the operator first."""
    intent = words["intent"].replace("\\", "\\\\").replace('"', "'")
    in_docstring = {**words, "intent": intent}
    for file, template in _TEMPLATES.items():
        name, source = (Template(each).substitute(words) for each in (file, template))
        text = files(__package__).joinpath("templates", source).read_text(encoding="utf-8")
        text = Template(text).substitute(in_docstring if name.endswith(".py") else words)
        if name.endswith(".py"):
            ast.parse(text, name)
        yield name, text


def _write(texts: dict[str, str], sandbox: Sandbox) -> None:
    for path in texts:
        try:
            sandbox.open_read(path).close()
        except NotFoundError:
            continue
        raise ConflictError(
            f"The file {path!r} is there already.", next_actions=["Give another output_dir."]
        )
    for path, text in texts.items():
        sandbox.write(path, text.encode(), expected_sha256=EXPECT_ABSENT)


async def _try(name: str, folder: PurePosixPath, context: RequestContext) -> str | None:
    """Returns why a run on the samples failed; None where it did not."""
    from tools.data.running.readiness import check_ready
    from tools.data.running.runs import run_recipe

    config = {
        "dataset_path": str(folder / "samples.jsonl"),
        "export_path": str(folder / "tried.jsonl"),
        "custom_operator_paths": [str(folder / f"{name}.py")],
        "process": [{name: None}],
        "np": 1,
    }
    try:
        check = partial(check_ready, Recipe.from_config(config), context.sandbox, dry_run=True)
        ready = await anyio.to_thread.run_sync(check)
        await run_recipe(ready, context, seconds=TRIAL_SECONDS)
    except ToolError as error:
        return error.message
    return None
