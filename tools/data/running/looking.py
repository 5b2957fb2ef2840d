"""The first rows of a data set, of any form: those that need Data-Juicer are read by its worker."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, get_args

import anyio.to_thread

from tools.core.context import RequestContext
from tools.core.errors import InvalidArgumentsError
from tools.data.answers.datasets import Form
from tools.data.checks.dataset import check_parquet
from tools.data.checks.rows import first_rows, is_directory
from tools.data.running.outputs import files_of
from tools.data.running.staging import Stage
from tools.data.worker.entries import Entry, form_of
from tools.data.worker.texts import text_key_of
from tools.sandbox.files.sandbox import Sandbox

TEXTS = (".txt", ".md", ".rst", ".tex", ".html", ".markdown")
"""Endings of files that are one text each."""

TEXT_BYTES = 50_000
"""Of a text file that are read."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of a data set.

    Attributes:
        form: Its form.
        rows: The first rows.
        size: Bytes of all of it.
        files: How many files it has.
        count: How many rows; None where they were not counted.
        about: How many they probably are; None where they were counted.
        broken: What holds no row, among the first 1,000.
        looked: How many rows were looked at for that, with the broken ones.
    """

    form: Form
    rows: list[dict[str, Any]]
    size: int
    files: int = 1
    count: int | None = None
    about: int | None = None
    broken: tuple[Entry, ...] = ()
    looked: int = 0

    @property
    def text_key(self) -> str | None:
        """The text key that fits the rows; None where none has a text."""
        return text_key_of(self.rows)


async def look_at(context: RequestContext, path: str, sample: int) -> Seen:
    """Reads the first rows of a file, or of a folder of texts.

    Args:
        context: Whose call it is, of the scope system.
        path: The file or folder.
        sample: How many rows at most.
    """
    sandbox = context.sandbox
    if await anyio.to_thread.run_sync(is_directory, sandbox, path):
        return await anyio.to_thread.run_sync(_folder, sandbox, path, sample)
    if PurePath(path).suffix.lower() == ".parquet":
        return await _parquet(context, path, sample)
    return await anyio.to_thread.run_sync(_file, sandbox, path, sample)


def _file(sandbox: Sandbox, path: str, sample: int) -> Seen:
    suffix = PurePath(path).suffix.lower()
    if suffix in TEXTS:
        content = sandbox.read(path, max_bytes=TEXT_BYTES)
        text = content.data.decode(errors="replace")
        return Seen("text", [{"text": text}], content.size, count=1)
    found = first_rows(sandbox, path)
    if found is None:
        raise InvalidArgumentsError(
            f"{path} is of a form that is not read.",
            suggestions=[".jsonl", ".json", ".csv", ".tsv", ".parquet", "a folder of texts"],
            next_actions=[
                "Give a file of one of these forms (.gz, .bz2, .xz and .zst too), or a text folder."
            ],
        )
    rows = list(found.rows)
    size = sandbox.read(path, max_bytes=0).size
    form: Form = form_of(path).removeprefix(".")  # type: ignore[assignment]  # those that are read
    count = len(rows) if found.is_whole else None
    is_plain = form_of(path) == suffix  # of a compressed file, the size tells nothing
    about = found.estimate(size) if is_plain and count is None else None
    looked = len(rows) + len(found.broken)
    return Seen(form, rows[:sample], size, 1, count, about, found.broken, looked)


def _folder(sandbox: Sandbox, path: str, sample: int) -> Seen:
    """A folder has the form of the text files in it, or of the data files where it has none."""
    files = files_of(sandbox, path)
    texts = [each for each in files if PurePath(each.path).suffix.lower() in TEXTS]
    if texts:
        rows = [
            {"text": sandbox.read(each.path, max_bytes=TEXT_BYTES).data.decode(errors="replace")}
            for each in texts[:sample]
        ]
        size = sum(each.size for each in texts)
        return Seen("text", rows, size, files=len(texts), count=len(texts))
    data = [each for each in files if PurePath(each.path).suffix.lower()[1:] in get_args(Form)]
    if not data:
        raise InvalidArgumentsError(
            f"{path} has no file that is read.",
            next_actions=[f"Give a folder with files ending in {', '.join(TEXTS)}, or one file."],
        )
    raise InvalidArgumentsError(
        f"{path} is a folder of {len(data)} data files.",
        suggestions=[each.path for each in data[:3]],
        next_actions=["Give one of its files."],
    )


async def _parquet(context: RequestContext, path: str, sample: int) -> Seen:
    from tools.data.running.workers import workers_of

    await anyio.to_thread.run_sync(check_parquet, context.sandbox, path)
    workers = await workers_of(context.machine)
    async with workers.directory() as directory:
        stage = Stage(context.sandbox, directory)
        copied = await anyio.to_thread.run_sync(stage.take, path)
        asked = {"do": "look", "path": copied, "source": path, "sample": sample}
        seen = await workers.ask(asked, context)
    size = context.sandbox.read(path, max_bytes=0).size
    return Seen("parquet", list(seen["sample"]), size, count=seen["rows"])
