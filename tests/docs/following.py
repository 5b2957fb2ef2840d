"""Pages that are followed to the letter: their files are written, their commands run, in order."""

import os
import re
import subprocess
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["DOCS", "Block", "Step", "blocks", "broken_links", "clean_home", "follow", "steps"]

DOCS = Path(__file__).parents[2] / "docs"

_BLOCK = re.compile(r"^([^\n]*)\n+```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"`([\w./-]+\.(?:jsonl?|md|py|toml))`:$")
_COMMAND = re.compile(r"^\$ ", re.MULTILINE)
_SECONDS = re.compile(r"\d+\\\.\d+s")  # as re.escape leaves it
_SECONDS_OR_MINUTES = r"\d+\.\d+s( \(\d+:\d\d:\d\d\))?"
_BAR = re.compile(r"^.*━.*\n", re.MULTILINE)
_LINK = re.compile(r"\]\((?!http)([^)#]+)(?:#([\w-]+))?\)")


@dataclass(frozen=True)
class Block:
    """A block of a page, and the file that the line before it names."""

    kind: str
    text: str
    file: str


@dataclass(frozen=True)
class Step:
    """A command of a page, and what the page says that it prints."""

    command: str
    shown: str

    @property
    def pattern(self) -> re.Pattern[str]:
        """What is to be printed: "…" is anything, and how long it took is of this machine."""
        anything = re.escape(self.shown.strip()).replace("…", ".*")
        return re.compile(_SECONDS.sub(lambda _: _SECONDS_OR_MINUTES, anything), re.DOTALL)


def blocks(page: str) -> Iterator[Block]:
    """The blocks of a page, in order."""
    for before, kind, text in _BLOCK.findall(page):
        named = _FILE.search(before)
        yield Block(kind, text, named[1] if named else "")


def steps(block: Block) -> list[Step]:
    """The commands of a block, if it shows a console."""
    told = _COMMAND.split(block.text)[1:] if block.kind == "console" else []
    return [Step(*each.split("\n", 1)) for each in told]


def clean_home(home: Path) -> dict[str, str]:
    """The environment of whoever follows a page: a home of their own, and a narrow terminal."""
    scripts = sysconfig.get_path("scripts")
    return {
        "HOME": str(home),
        "PATH": os.pathsep.join([scripts, os.environ["PATH"]]),
        "TOOLCRIB_DATA_DIR": str(home / "data"),
        "COLUMNS": "80",
    }


def follow(page: str, folder: Path, environment: dict[str, str]) -> dict[str, str]:
    """Follows a page from its top to its end, and returns what each command printed."""
    printed = {}
    for block in blocks(page):
        if block.file:
            (folder / block.file).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.file).write_text(block.text, encoding="utf-8")
        for step in steps(block):
            ended = subprocess.run(
                ["bash", "-c", step.command],  # noqa: S607  # the page's readers have one too
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            printed[step.command] = _BAR.sub("", ended.stdout)
    return printed


def broken_links(page: str, folder: Path = DOCS) -> list[str]:
    """Returns the links of a page in a folder that lead nowhere."""
    return [
        f"{path}#{anchor}"
        for path, anchor in _LINK.findall(page)
        if not (folder / path).exists() or (anchor and anchor not in _anchors(folder / path))
    ]


def _anchors(target: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
