"""Describes a saved plan to the person who approves it, and checks that the same plan runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from tools.core.errors import ConflictError, InvalidArgumentsError
from tools.data.catalogue.catalogue import bundled
from tools.data.checks.recipe import check_recipe
from tools.data.recipe import Plan
from tools.data.running.cleaning import report_of
from tools.data.running.outputs import (
    Outputs,
    describe_data,
    digest_of,
    files_in,
    find_outputs,
    quote_unprintable,
    recipe_outputs,
)
from tools.data.running.readiness import ReadyRecipe, check_ready
from tools.data.running.staging import code_paths
from tools.data.specs import Checked
from tools.sandbox.files.sandbox import Sandbox

PLAN_BYTES = 1_000_000

WITH_CODE = frozenset({"python_lambda_mapper", "python_file_mapper"})
"""Operators of the release that run code which the recipe gives them."""

_json = partial(json.dumps, ensure_ascii=False, default=str)


@dataclass(frozen=True)
class PlannedRun:
    """A saved plan with what it replaces and the code that it names, as they are when it is read.

    Each step of a call reads it again: what a person is shown, the check, and the run. The digest
    shows whether all of them read the same.
    """

    sandbox: Sandbox
    path: str
    content: bytes
    plan: Plan
    outputs: Outputs

    @classmethod
    def read(cls, sandbox: Sandbox, path: str, *, dry_run: bool) -> PlannedRun:
        """Reads a plan, and what it would replace; blocks."""
        found = sandbox.read(path, max_bytes=PLAN_BYTES)
        if found.size > PLAN_BYTES:
            raise InvalidArgumentsError(
                f"{path} has {found.size:,} bytes; a plan has at most {PLAN_BYTES:,}.",
                next_actions=["Give a plan that plan_save wrote."],
            )
        content = found.data
        plan = Plan.from_yaml(content.decode("utf-8", "replace"), path)
        if dry_run:
            return cls(sandbox, path, content, plan, Outputs())
        report = report_of(sandbox, path, plan)
        paths = [*recipe_outputs(plan.recipe, sandbox), *([report] if report else ())]
        return cls(sandbox, path, content, plan, find_outputs(sandbox, paths))

    @cached_property
    def code(self) -> bytes:
        """Identifies the code that the plan names; blocks."""
        paths = code_paths(self.plan.recipe.to_config())
        return _identify((self.sandbox, each) for each in paths)

    @property
    def digest(self) -> str:
        """Identifies the plan, the code that it names and what it replaces; blocks."""
        return self._digest(self.code, self.outputs)

    def check_ready(self, *, dry_run: bool, digest: str | None) -> ReadyRecipe:
        """Checks that the plan is valid, can run, and has this digest; blocks."""
        recipe, sandbox = self.plan.recipe, self.sandbox
        ready = check_ready(recipe, sandbox, dry_run=dry_run, outputs=self.outputs)
        Checked.of(check_recipe(recipe, bundled(), sandbox)).accepted(f"plan {self.path}")
        self._check_digest(digest, self.code)
        return ready

    def check_copied(self, digest: str | None, config: Mapping[str, Any]) -> None:
        """Refuses to run code, as it was copied in, that is not what was approved; blocks."""
        copied = map(Path, code_paths(config))
        code = _identify((Sandbox(each.parent), each.name) for each in copied)
        self._check_digest(digest, code)

    def describe(self, given: Mapping[str, Any]) -> tuple[str, str]:
        """Returns the digest and what a person is shown of a call with these arguments; blocks.

        The digest is empty if another one was given: not this, nor that of the plan and its code.
        """
        own = {self.digest, self._digest(self.code, Outputs())}
        digest = self.digest if given.get("digest", self.digest) in own else ""
        recipe = self.plan.recipe
        local = recipe.dataset.local_paths
        code, operators = recipe.process.custom_operator_paths or (), recipe.process.operators
        remote = (each for each in recipe.dataset.paths if each not in local)
        lines = [
            *(f"{name}: {_json(value)}" for name, value in given.items() if name != "digest"),
            f"for: {self.plan.user_intent}",
            *(f"reads: {_json(describe_data(self.sandbox, each))}" for each in local),
            *(f"reads: {_json(f'{each} (remote, rows unknown)')}" for each in remote),
            f"writes: {_json(recipe.dataset.export_path)}",
            *self.outputs.describe(self.sandbox),
            *(f"runs code of: {_json(each)}" for each in code),
            f"operators ({recipe.system.executor_type}):",
            *(f"    {quote_unprintable(each.name)} {_json(each.params)}" for each in operators),
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

    def _digest(self, code: bytes, outputs: Outputs) -> str:
        return hashlib.sha256(self.content + code + outputs.digest()).hexdigest()

    def _check_digest(self, given: str | None, code: bytes) -> None:
        if given != self._digest(code, self.outputs):
            raise ConflictError(
                f"{self.path}, code that it names or a file that it replaces has changed since the"
                " call was judged, or has another digest than was given; nothing was run.",
                next_actions=["Look at what changed, and call it again without digest."],
            )


def _identify(paths: Iterable[tuple[Sandbox, str]]) -> bytes:
    """Returns bytes that identify files, and those in folders, wherever these are."""
    lines = []
    for at, (sandbox, path) in enumerate(paths):
        top = sandbox.relative(path)
        for each in map(sandbox.relative, files_in(sandbox, path)):
            name = each.removeprefix(top).removeprefix("/")
            lines.append(f"\0{at}/{name}\0{digest_of(sandbox, each).sha256}")
    return "".join(lines).encode(errors="surrogateescape")
