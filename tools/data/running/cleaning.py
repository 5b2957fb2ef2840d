"""Cleans a data set by a recipe made for its first rows, and writes that recipe and a report."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

import anyio.to_thread

from tools.core.context import RequestContext
from tools.core.errors import Action, ConflictError, InvalidArgumentsError
from tools.data.answers.runs import CleanedDataset, RunReport
from tools.data.checks.dataset import check_apart, find_overlap
from tools.data.recipe import DatasetSpec, Plan, ProcessSpec, Recipe, Step, SystemSpec
from tools.data.running.looking import TEXTS, Seen, look_at
from tools.data.running.outputs import Outputs, check_free, describe_data, digest_of, find_outputs
from tools.data.running.readiness import ReadyRecipe, check_ready
from tools.data.running.runs import run_recipe
from tools.data.worker.entries import SKIPS_ROWS, stem_of
from tools.data.worker.texts import joined, values_of
from tools.sandbox.files.sandbox import Sandbox

DEFAULT_WORK = ("clean", "dedupe")
SAMPLED_ROWS = 200

_KEEP_ALL = Step(name="text_length_filter", params={"min_len": 0})
_TAG = re.compile(
    r"</?(?:p|div|br|span|a|li|ul|table|tr|td|h[1-6]|b|i|em|strong)\b[^>]*>", re.IGNORECASE
)
_HTML_SHARE = 0.2  # of texts with tags, from which they are taken for HTML
_SHORT = 40  # characters of the median text, below which short ones such as titles are wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaning:
    """What a call of `clean_dataset` asks for; without `text_key` the longest texts are cleaned."""

    source: str
    output: str
    work: Sequence[str]
    text_key: str | None
    keep_stats: bool
    overwrite: bool
    digest: str | None
    dry_run: bool

    def make_plan(self, seen: Seen) -> Plan:
        """Returns the plan for a data set that looks so; raises if it has no texts."""
        form, text_key = seen.inspection.form, self.text_key or seen.inspection.text_key
        if text_key is None:
            raise InvalidArgumentsError(
                f"No field of {self.source} holds texts.",
                next_actions=[
                    Action("Look at it with {}, and give the {}.", "inspect_dataset", "text_key")
                ],
            )
        texts = [joined(values_of(row, text_key)) for row in seen.rows]
        steps = list(cleaning_steps(texts)) if "clean" in self.work else []
        if "dedupe" in self.work or "dedupe_near" in self.work:
            steps += deduplicating_steps(near="dedupe_near" in self.work)
        recipe = Recipe(
            dataset=DatasetSpec(
                dataset_path=self.source,
                export_path=self.output,
                text_keys=[text_key],
                suffixes=list(TEXTS) if form == "text" else None,  # what was looked at
                load_jsonl_lenient=True if form == "jsonl" else None,
                load_dataset_kwargs=dict(SKIPS_ROWS) if form in {"csv", "tsv"} else None,
                keep_stats_in_res_ds=self.keep_stats or None,
            ),
            process=ProcessSpec(operators=steps or [_KEEP_ALL]),
            system=SystemSpec.model_validate({"skip_op_error": False}),
        )
        intent = f"{', then '.join(self.work) or 'write in another form'}: {self.source}"
        return Plan(user_intent=intent, recipe=recipe, approval_required=False)

    def find_outputs(self, sandbox: Sandbox) -> Outputs:
        """Finds the files that it replaces, if they are those that were approved; blocks."""
        paths = [self.output, *_extra_files(self.output)]
        check_apart(sandbox, paths, self.source, Action("Give another {}.", "output_path"))
        if not self.overwrite:
            check_free(sandbox, paths)
        outputs = find_outputs(sandbox, paths)
        if outputs.replaced and self.digest != _digest(outputs):
            raise ConflictError(
                f"{', '.join(outputs.replaced)}: what would be replaced has changed since the call"
                " was judged; nothing was run.",
                next_actions=["Look at what changed, and call it again without digest."],
            )
        return outputs


async def clean(context: RequestContext, cleaning: Cleaning, seconds: float) -> CleanedDataset:
    """Makes a recipe for a data set, runs it, and writes both down with a report."""
    source, sandbox, dry_run = cleaning.source, context.sandbox, cleaning.dry_run
    seen = await look_at(context, source, SAMPLED_ROWS)
    broken = seen.inspection.first_not_readable
    if broken and (seen.inspection.form == "json" or not seen.rows):
        raise InvalidArgumentsError(
            f"{source} cannot be read: {broken[0]}.", next_actions=["Correct it there."]
        )
    if not seen.rows:
        raise InvalidArgumentsError(
            f"{source} has no rows ({seen.inspection.size} bytes).",
            next_actions=["Give a file with some."],
        )
    plan = cleaning.make_plan(seen)

    def check() -> ReadyRecipe:
        outputs = Outputs() if dry_run else cleaning.find_outputs(sandbox)
        return check_ready(plan.recipe, sandbox, dry_run=dry_run, outputs=outputs)

    ready = await anyio.to_thread.run_sync(check)
    report = await run_recipe(ready, context, seconds=seconds)
    answer = CleanedDataset.from_attributes(
        report, recipe=plan.to_yaml(), recipe_path=None, report_path=None
    )
    if dry_run:
        return answer
    recipe_path, report_path = _extra_files(cleaning.output)

    def write() -> None:
        ready.outputs.write(sandbox, recipe_path, answer.recipe.encode())
        _write_report(sandbox, source, recipe_path, report_path, report, ready.outputs)

    await anyio.to_thread.run_sync(write)
    return answer.model_copy(update={"recipe_path": recipe_path, "report_path": report_path})


def default_output(source: str) -> str:
    """Returns the default path of the cleaned rows of a source."""
    plain = PurePosixPath(source.rstrip("/"))
    if not plain.stem:
        raise InvalidArgumentsError(
            f"{source!r} has no name for the result.", next_actions=["Give output_path."]
        )
    return str(plain.with_name(f"{stem_of(plain.name)}.clean.jsonl"))


def describe_replacing(sandbox: Sandbox, source: str, output: str) -> tuple[str, str]:
    """Returns the digest of what a call replaces, and its description; both empty for nothing."""
    outputs = find_outputs(sandbox, [output, *_extra_files(output)])
    if not outputs.replaced:
        return "", ""
    reads = f"reads: {describe_data(sandbox, source)}"
    return _digest(outputs), "\n".join([reads, f"writes: {output}", *outputs.describe(sandbox)])


def report_of(sandbox: Sandbox, plan_path: str, plan: Plan) -> str | None:
    """Returns where the report of a recipe is that `clean` wrote; None if there is none."""
    dataset = plan.recipe.dataset
    recipe, report = _extra_files(dataset.export_path)
    is_own = sandbox.relative(plan_path) == sandbox.relative(recipe) and len(dataset.paths) == 1
    if not is_own or find_overlap(sandbox, report, dataset.local_paths):
        return None
    return report if find_outputs(sandbox, [report]).replaced else None


def renew_report(
    sandbox: Sandbox, plan_path: str, plan: Plan, report: RunReport, outputs: Outputs
) -> None:
    """Writes the report again of a recipe that `clean` wrote and that was run again; blocks."""
    if path := report_of(sandbox, plan_path, plan):
        _write_report(sandbox, plan.recipe.dataset.paths[0], plan_path, path, report, outputs)


def _write_report(
    sandbox: Sandbox, source: str, recipe: str, path: str, report: RunReport, outputs: Outputs
) -> None:
    content = report.to_markdown(digest_of(sandbox, source), PurePosixPath(recipe).name)
    outputs.write(sandbox, path, content)


def _extra_files(output: str) -> tuple[str, str]:
    """Returns where recipe and report of an output are; outputs of two forms have two of each."""
    name = output.removesuffix(".jsonl")
    return f"{name}.recipe.yaml", f"{name}.report.md"


def _digest(outputs: Outputs) -> str:
    return hashlib.sha256(outputs.digest()).hexdigest()


def deduplicating_steps(*, near: bool) -> list[Step]:
    """Returns what drops rows whose text an earlier row has too, in any case.

    With `near`, texts that share 70 % of all sequences of five characters are the same too.
    """
    exact = Step(name="document_deduplicator", params={"lowercase": True})
    if not near:
        return [exact]
    similar = {
        "tokenization": "character",  # words would take all texts of few words for one
        "window_size": 5,
        "lowercase": True,
        "jaccard_threshold": 0.7,
        "num_permutations": 256,
        "num_bands": 25,  # both as Data-Juicer computes them, which needs SciPy
        "num_rows_per_band": 10,
    }
    return [exact, Step(name="document_minhash_deduplicator", params=similar)]


def cleaning_steps(texts: Sequence[str]) -> Iterator[Step]:
    """Yields what mends such texts, and drops rows that hold hardly any."""
    tagged = sum(1 for text in texts if len(_TAG.findall(text)) > 1)
    if texts and tagged / len(texts) >= _HTML_SHARE:
        yield Step(name="clean_html_mapper")
    yield Step(name="fix_unicode_mapper")
    yield Step(name="whitespace_normalization_mapper")
    lengths = sorted(map(len, texts))
    is_short = bool(lengths) and lengths[len(lengths) // 2] < _SHORT
    yield Step(name="text_length_filter", params={"min_len": 1 if is_short else 10})
    yield Step(name="alphanumeric_filter", params={"tokenization": False, "min_ratio": 0.25})
    if not is_short:
        repeats = {"rep_len": 10, "max_ratio": 0.5}
        yield Step(name="character_repetition_filter", params=repeats)
