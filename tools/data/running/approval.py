"""What a person approves of a saved plan, and checks that this is what runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from tools.core.errors import ConflictError
from tools.data.answers.specs import Checked
from tools.data.catalogue.bundle import bundled
from tools.data.checks.recipe import check_recipe
from tools.data.recipe import Plan
from tools.data.running.cleaning import report_of
from tools.data.running.outputs import (
    Outputs,
    describe_data,
    digest_of,
    files_in,
    find_outputs,
    recipe_outputs,
)
from tools.data.running.readiness import ReadyRecipe, check_ready
from tools.data.running.staging import code_paths
from tools.sandbox.files.sandbox import Sandbox

PLAN_BYTES = 1_000_000

WITH_CODE = frozenset({"python_lambda_mapper", "python_file_mapper"})
"""Operators of the release that run code which the recipe gives them."""

_json = partial(json.dumps, ensure_ascii=False, default=str)


@dataclass(frozen=True)
class PlannedRun:
    """A saved plan with what it replaces and the code that it names, as they are when it is read.

    It is read for each step of a call: what a person is asked about, the check, and the run. The
    digest shows whether all of them are about the same.
    """

    sandbox: Sandbox
    path: str
    dry_run: bool
    content: bytes
    plan: Plan
    outputs: Outputs

    @classmethod
    def read(cls, sandbox: Sandbox, path: str, *, dry_run: bool) -> PlannedRun:
        """Reads a plan, and what is at the places it writes to; blocks."""
        content = sandbox.read(path, max_bytes=PLAN_BYTES).data
        plan = Plan.from_yaml(content.decode("utf-8", "replace"))
        outputs = Outputs()
        if not dry_run:
            report = report_of(sandbox, path, plan)
            found = recipe_outputs(plan.recipe, sandbox)
            outputs = find_outputs(sandbox, [*found, *([report] if report else [])])
        return cls(sandbox, path, dry_run, content, plan, outputs)

    @cached_property
    def digest(self) -> str:
        """Identifies the plan, the code that it names and what it replaces; blocks."""
        return self._digest(self._code, self.outputs)

    def check_ready(self, digest: str | None) -> ReadyRecipe:
        """Checks that the plan is valid, could run, and has this digest; blocks."""
        recipe, sandbox = self.plan.recipe, self.sandbox
        ready = check_ready(recipe, sandbox, dry_run=self.dry_run, outputs=self.outputs)
        Checked.of(check_recipe(recipe, bundled(), sandbox)).accepted(f"plan {self.path}")
        self._check_digest(digest, self.digest)
        return ready

    def check_copied(self, digest: str | None, config: Mapping[str, Any]) -> None:
        """Refuses to run code, as it was copied in, that is not what was approved; blocks."""
        copied = map(Path, code_paths(config))
        code = [_digest_files(Sandbox(each.parent), each.name) for each in copied]
        self._check_digest(digest, self._digest(code, self.outputs))

    def describe(self, given: Mapping[str, Any]) -> tuple[str, str]:
        """Returns the digest and what a person is shown of a call with these arguments; blocks.

        The digest is empty if another one was given, with or without the replaced files.
        """
        own = {self.digest, self._digest(self._code, Outputs())}
        digest = self.digest if given.get("digest", self.digest) in own else ""
        dataset, process = self.plan.recipe.dataset, self.plan.recipe.process
        local = dataset.local_paths
        remote = [f"{each} (remote, rows unknown)" for each in dataset.paths if each not in local]
        data = [*(describe_data(self.sandbox, each) for each in local), *remote]
        lines = [
            *(f"{name}: {_json(value)}" for name, value in given.items() if name != "digest"),
            f"for: {self.plan.user_intent}",
            *(f"reads: {_json(each)}" for each in data),
            f"writes: {_json(dataset.export_path)}",
            *self.outputs.describe(self.sandbox),
            *(f"runs code of: {_json(each)}" for each in process.custom_operator_paths or ()),
            f"operators ({self.plan.recipe.system.executor_type}):",
            *(f"    {each.name} {_json(each.params)}" for each in process.operators),
            f"digest: {digest or 'not the one that was given; nothing will run'}",
        ]
        return digest, "\n".join(lines)

    def reasons(self) -> Iterator[str]:
        """Says why a person must approve it; the plan can add to the reasons, not lift them."""
        process = self.plan.recipe.process
        if self.plan.recipe.on_cluster:
            yield "it runs on a cluster, where nothing confines it"
        if self.outputs.replaced:
            yield f"it replaces {', '.join(self.outputs.replaced)}"
        if process.custom_operator_paths or WITH_CODE & {each.name for each in process.operators}:
            yield "it runs code that the plan brings"
        if self.plan.approval_required:
            yield "it says so"

    @cached_property
    def _code(self) -> list[dict[str, str]]:
        paths = code_paths(self.plan.recipe.to_config())
        return [_digest_files(self.sandbox, each) for each in paths]

    def _digest(self, code: Sequence[Mapping[str, str]], outputs: Outputs) -> str:
        digest = hashlib.sha256(self.content)
        for at, files in enumerate(code):
            for name, each in sorted(files.items()):
                digest.update(f"\0{at}/{name}\0{each}".encode(errors="surrogateescape"))
        digest.update(outputs.digest())
        return digest.hexdigest()

    def _check_digest(self, given: str | None, actual: str) -> None:
        if given != actual:
            raise ConflictError(
                f"{self.path}, code that it names or a file that it replaces has changed since the"
                " call was judged, or has another digest than was given; nothing was run.",
                next_actions=["Look at what changed, and call it again without digest."],
            )


def _digest_files(sandbox: Sandbox, path: str) -> dict[str, str]:
    """Returns the digest of each file in a folder, by its path in there; or of one file."""
    top = sandbox.relative(path)
    return {
        each.removeprefix(top).removeprefix("/"): digest_of(sandbox, each).sha256
        for each in map(sandbox.relative, files_in(sandbox, path))
    }
