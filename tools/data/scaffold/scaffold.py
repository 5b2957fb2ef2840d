"""A scaffold: which files an operator begins with."""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files as files_of
from pathlib import PurePosixPath
from string import Template

from tools.core.errors import ConflictError, InvalidArgumentsError
from tools.data.catalogue.catalogue import Catalogue
from tools.data.catalogue.kinds import OwnKind
from tools.data.recipe import DatasetSpec, ProcessSpec, Recipe, Step, SystemSpec

_TEMPLATES = files_of(__package__).joinpath("templates")
_NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class Scaffold:
    """The files of an operator: their texts by their paths, which are relative to the root."""

    name: str
    cls: str
    folder: str
    files: dict[str, str]

    @classmethod
    def of(
        cls, intent: str, name: str, kind: OwnKind, folder: str, catalogue: Catalogue
    ) -> Scaffold:
        """Returns the files of an operator whose name, in the end, ends in its kind."""
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
        code = {**words, "intent": said.replace("\\", "\\\\").replace('"', "'")}  # in a docstring
        texts = {
            f"{full}.py": _filled(kind, code),
            f"test_{full}.py": _filled(f"test_{kind}", code),
            "samples.jsonl": _TEMPLATES.joinpath("samples.jsonl").read_text(encoding="utf-8"),
            "README.md": _filled("readme", {**words, "intent": said, "version": catalogue.version}),
        }
        for file, text in texts.items():
            if file.endswith(".py"):
                ast.parse(text, file)
        files = {str(PurePosixPath(folder, file)): text for file, text in texts.items()}
        return cls(full, title, folder, files)

    @property
    def operator_path(self) -> str:
        """The file of the operator."""
        return str(PurePosixPath(self.folder, f"{self.name}.py"))

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


def _filled(template: str, values: Mapping[str, str]) -> str:
    text = _TEMPLATES.joinpath(f"{template}.txt").read_text(encoding="utf-8")
    return Template(text).substitute(values)
