"""A scaffold: which files an operator begins with, and whether they are sound."""

from __future__ import annotations

import ast
import keyword
import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from string import Template

from tools.core.errors import ConflictError, InvalidArgumentsError
from tools.data.catalogue.catalogue import Catalogue
from tools.data.catalogue.kinds import OwnKind
from tools.data.recipe import DatasetSpec, ProcessSpec, Recipe, Step, SystemSpec
from tools.data.scaffold.templates import OPERATORS, README, SAMPLES, TESTS

_NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class Scaffold:
    """The files of an operator.

    Attributes:
        name: The operator's name, which ends in its kind.
        cls: The name of its class.
        kind: Its kind.
        folder: The directory that they are in, relative to the root.
        files: Their texts by their paths, relative to the root.
    """

    name: str
    cls: str
    kind: OwnKind
    folder: str
    files: dict[str, str]

    @classmethod
    def of(
        cls, intent: str, name: str, kind: OwnKind, folder: str, catalogue: Catalogue
    ) -> Scaffold:
        """The files of an operator that is to be written.

        Args:
            intent: What it is to do.
            name: How it is to be called; its kind is put behind it where that is missing, for
                Data-Juicer knows the kind by the name.
            kind: Its kind.
            folder: Where it is to lie, relative to the root.
            catalogue: The operators that there are.

        Raises:
            InvalidArgumentsError: If that is no name.
            ConflictError: If the release has an operator of that name.
        """
        full = name if name.endswith(f"_{kind}") else f"{name}_{kind}"
        if not _NAME.fullmatch(full) or keyword.iskeyword(full):
            raise InvalidArgumentsError(
                f"operator_name: {name!r} is no name of an operator.",
                next_actions=["Give lower-case words with underscores, such as fix_dates_mapper."],
            )
        if full in catalogue.operators:
            raise ConflictError(
                f"Data-Juicer {catalogue.version} has an operator {full}.",
                next_actions=["See it with get_operator_info, or give another name."],
            )
        title = "".join(each.capitalize() for each in full.split("_"))
        path = str(PurePosixPath(folder, f"{full}.py"))
        said = " ".join(intent.split())
        words = {"name": full, "cls": title, "kind": kind, "path": path}
        code = {**words, "intent": _quotable(said)}
        told = {**words, "intent": said, "version": catalogue.version}
        texts = {
            f"{full}.py": Template(OPERATORS[kind]).substitute(code),
            f"test_{full}.py": Template(TESTS[kind]).substitute(code),
            "samples.jsonl": SAMPLES,
            "README.md": Template(README).substitute(told),
        }
        files = {str(PurePosixPath(folder, file)): text for file, text in texts.items()}
        made = cls(full, title, kind, folder, files)
        made.check()
        return made

    @property
    def operator_path(self) -> str:
        """The file of the operator."""
        return str(PurePosixPath(self.folder, f"{self.name}.py"))

    def check(self) -> None:
        """Sees that its Python can be read and registers the class.

        Raises:
            SyntaxError: If it cannot be read.
            ValueError: If it registers none.
        """
        for path, text in self.files.items():
            if path.endswith(".py"):
                ast.parse(text, path)
        tree = ast.parse(self.files[self.operator_path])
        if self.cls not in {each.name for each in tree.body if isinstance(each, ast.ClassDef)}:
            raise ValueError(f"{self.operator_path} has no class {self.cls}.")

    def trial(self) -> Recipe:
        """The recipe that runs it on its samples."""
        path = str(PurePosixPath(self.folder, "samples.jsonl"))
        return Recipe(
            dataset=DatasetSpec(
                dataset_path=path, export_path=str(PurePosixPath(self.folder, "tried.jsonl"))
            ),
            process=ProcessSpec(
                operators=[Step(name=self.name)], custom_operator_paths=[self.operator_path]
            ),
            system=SystemSpec(np=1),
        )


def _quotable(text: str) -> str:
    """A text that may stand in a docstring."""
    return text.replace("\\", "\\\\").replace('"', "'")
