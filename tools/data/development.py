"""Operators of one's own: their first files, and a trial of them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import anyio.to_thread
from pydantic import Field

from tools.core.context import RequestContext
from tools.core.errors import ConflictError, NotFoundError, ToolError
from tools.core.result import OmitNone, ToolModel
from tools.core.spec import Effect, Subject, SubjectKind, ToolScope, tool
from tools.data.catalogue.bundle import bundled
from tools.data.catalogue.kinds import OwnKind
from tools.sandbox.files.editing import ABSENT
from tools.sandbox.files.sandbox import Sandbox
from tools.sandbox.files.text_files import FilePath

if TYPE_CHECKING:  # a start writes none
    from tools.data.scaffold.scaffold import Scaffold

TRIAL_SECONDS = 240.0


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
        said = f"The trial failed: {self.failure}" if self.failure else checks[self.checked]
        return (
            f"Wrote {operator}, with {', '.join(others)}. {said}\n"
            f"Next: put in what {self.operator_name} is to do, and name {operator} in "
            "custom_operator_paths of a process spec."
        )


@tool(
    scope=ToolScope.SYSTEM,
    effects={Effect.WRITE, Effect.EXECUTE},
    tags=("data", "operators"),
    capabilities=("begin an operator of one's own for Data-Juicer",),
    timeout=TRIAL_SECONDS + 60,
    becomes_job=True,
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
    from tools.data.scaffold.scaffold import Scaffold

    folder = context.sandbox.relative(output_dir)
    scaffold = Scaffold.of(intent, operator_name, operator_type, folder, bundled())
    if smoke_check:
        from tools.data.running.workers import workers_of

        (await workers_of(context.machine)).check()  # before anything is written
    await anyio.to_thread.run_sync(partial(_write, scaffold, context.sandbox))
    failure = await _tried(scaffold, context) if smoke_check else None
    return DevelopedOperator(
        operator_name=scaffold.name,
        class_name=scaffold.cls,
        files=list(scaffold.files),
        checked="run" if smoke_check and failure is None else "syntax",
        failure=failure,
    )


def _write(scaffold: Scaffold, sandbox: Sandbox) -> None:
    for path in scaffold.files:
        try:
            sandbox.open_read(path).close()
        except NotFoundError:
            continue
        raise ConflictError(
            f"The file {path!r} is there already.", next_actions=["Give another output_dir."]
        )
    for path, text in scaffold.files.items():
        sandbox.write(path, text.encode(), expected_sha256=ABSENT)


async def _tried(scaffold: Scaffold, context: RequestContext) -> str | None:
    """Returns why a run on its samples failed; None where it did not."""
    from tools.data.running.readiness import check_ready
    from tools.data.running.runs import run_recipe

    try:
        check = partial(check_ready, scaffold.trial(), context.sandbox, dry_run=True)
        ready = await anyio.to_thread.run_sync(check)
        await run_recipe(ready, context, seconds=TRIAL_SECONDS)
    except ToolError as error:
        return error.message
    return None
