"""A recipe: which data, which operators and how they are run, by the keys of Data-Juicer."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, Literal

from pydantic import Field, FiniteFloat, ValidationError

from tools.core.errors import InvalidArgumentsError
from tools.core.result import ToolModel

Executor = Literal["default", "ray", "ray_partitioned"]
FileOrDirectory = Annotated[str, Field(max_length=4_096)]
Key = Annotated[str, Field(min_length=1, max_length=256)]

_INTENT = "# "  # begins the first line of a saved plan
_APPROVAL = "# approval_required: "  # begins the second
_MAX_INTENT = 2_000
_MAX_DEPTH = 32
_APPROVALS = re.compile(r"^[^\S\n]*#[^\S\n]*approval_required.*", re.IGNORECASE | re.MULTILINE)
_NUMERIC = tuple("+-.0123456789")


class DatasetSource(ToolModel, extra="allow"):
    """One of the places that data comes from; its strategy takes more keys than these.

    Attributes:
        type: Where it is.
        source: Kind of remote place.
        path: File, directory or name there.
        weight: Share of a sample.
    """

    type: Literal["local", "remote"] = "local"
    source: str | None = None
    path: FileOrDirectory | None = None
    weight: Annotated[FiniteFloat, Field(ge=0)] | None = None


class DatasetMixture(ToolModel, extra="forbid"):
    """Data from one place or several.

    Attributes:
        configs: The places.
        max_sample_num: Samples to take.
    """

    configs: Annotated[list[DatasetSource], Field(min_length=1, max_length=1000)]
    max_sample_num: Annotated[int, Field(ge=1)] | None = None


class DatasetSpec(ToolModel, extra="forbid"):
    """What is read, what is written, and under which keys a sample has its parts.

    Attributes:
        dataset_path: File or directory, relative to the root; or else dataset.
        dataset: Several places {configs, max_sample_num}.
        generated_dataset_config: Formatter (type) that makes data, and arguments.
        export_path: File to write.
        export_type: Its format; default: by name.
        text_keys: Where a sample has text; operators take the first.
        image_key: Where it has its images.
        image_bytes_key: Where it has their bytes.
        audio_key: Where it has its audio files.
        video_key: Where it has its video files.
        suffixes: Endings of files to read.
        keep_stats_in_res_ds: Write filters' stats.
        keep_hashes_in_res_ds: Write hashes.
        load_jsonl_lenient: Leave out lines of JSONL that cannot be read.
        load_dataset_kwargs: More arguments of the reader.
        validators: Checks of the data, each with its type.
    """

    dataset_path: FileOrDirectory | None = None
    dataset: DatasetMixture | None = None
    generated_dataset_config: dict[str, Any] | None = None
    export_path: Annotated[FileOrDirectory, Field(min_length=1)]
    export_type: str | None = None
    text_keys: list[Key] | None = None
    image_key: Key | None = None
    image_bytes_key: Key | None = None
    audio_key: Key | None = None
    video_key: Key | None = None
    suffixes: list[str] | None = None
    keep_stats_in_res_ds: bool | None = None
    keep_hashes_in_res_ds: bool | None = None
    load_jsonl_lenient: bool | None = None
    load_dataset_kwargs: dict[str, Any] | None = None
    validators: list[dict[str, Any]] | None = None

    @property
    def paths(self) -> list[str]:
        """The files and directories that are read; of remote data what they are called there."""
        sources = self.dataset.configs if self.dataset else ()
        return [path for path in (self.dataset_path, *(each.path for each in sources)) if path]

    @property
    def local_paths(self) -> list[str]:
        """Those of them that are on this machine."""
        if self.dataset_path:
            return [self.dataset_path]
        sources = self.dataset.configs if self.dataset else ()
        return [each.path for each in sources if each.type == "local" and each.path]


class Step(ToolModel, extra="forbid"):
    """One operator with its parameters.

    Attributes:
        name: The operator.
        params: Its parameters; the others have the operator's defaults.
    """

    name: Annotated[str, Field(min_length=1, max_length=256)]
    params: dict[str, Any] = Field(default_factory=dict)


class ProcessSpec(ToolModel, extra="forbid"):
    """The operators in their order.

    Attributes:
        operators: Each with its parameters.
        custom_operator_paths: Files with operators of your own.
    """

    operators: Annotated[list[Step], Field(min_length=1, max_length=200)]
    custom_operator_paths: list[FileOrDirectory] | None = None


class SystemSpec(ToolModel, extra="allow"):
    """How a recipe is run; it also takes every key that `list_system_config` lists.

    Attributes:
        executor_type: One process ("default"), or a Ray cluster.
        np: Processes at once.
    """

    executor_type: Executor = "default"
    np: Annotated[int, Field(ge=1)] | None = None


class Recipe(ToolModel, extra="forbid"):
    """The data, the operators, and how they are run.

    Attributes:
        dataset: Which data.
        process: Which operators.
        system: How they are run.
    """

    dataset: DatasetSpec
    process: ProcessSpec
    system: SystemSpec = Field(default_factory=SystemSpec)

    @property
    def on_cluster(self) -> bool:
        """Whether a Ray cluster runs it."""
        return self.system.executor_type != "default"

    def to_config(self) -> dict[str, Any]:
        """Returns Data-Juicer's configuration, without the keys that have their defaults."""
        dataset = self.dataset.model_dump(exclude_none=True)
        path = dataset.get("dataset_path")
        if path and shlex.quote(path) != path:  # that key's value is split like a command line
            del dataset["dataset_path"]
            dataset["dataset"] = {"configs": [{"type": "local", "path": path}]}
        if custom := self.process.custom_operator_paths:
            dataset["custom_operator_paths"] = custom
        return {
            **dataset,
            **self.system.model_dump(exclude_none=True),
            "process": [{each.name: each.params or None} for each in self.process.operators],
        }

    @classmethod
    def from_config(cls, config: Mapping[str, Any], name: str = "This") -> Recipe:
        """Reads a configuration of Data-Juicer; an error names the wrong key."""
        rest = dict(config)
        dataset = {key: rest.pop(key) for key in DatasetSpec.model_fields if key in rest}
        if isinstance(dataset.get("text_keys"), str):
            dataset["text_keys"] = [dataset["text_keys"]]
        process: dict[str, Any] = {"operators": _read_steps(rest.pop("process", []))}
        if "custom_operator_paths" in rest:
            process["custom_operator_paths"] = rest.pop("custom_operator_paths")
        with explain_faults(f"{name} is not a recipe"):
            return cls.model_validate({"dataset": dataset, "process": process, "system": rest})


class Plan(ToolModel, extra="forbid"):
    """A recipe with what it is for.

    Attributes:
        user_intent: What it is for.
        recipe: What is done.
        approval_required: Whether a person is asked before it runs.
    """

    user_intent: Annotated[str, Field(max_length=_MAX_INTENT, pattern=r"\S")]
    recipe: Recipe
    approval_required: bool = True

    def to_yaml(self) -> str:
        """Returns the file that `dj-process --config` takes, with the other fields in comments."""
        asks = "true" if self.approval_required else "false"
        comments = f"{_INTENT}{_one_line(self.user_intent)}\n{_APPROVAL}{asks}\n"
        return comments + as_yaml(self.recipe.to_config())

    @classmethod
    def from_yaml(cls, text: str, name: str = "This") -> Plan:
        """Reads such a file; approval is required unless its second line alone says otherwise."""
        with explain_faults(f"{name} is not a recipe"):
            config = read_plain_yaml(text)
        if not isinstance(config, dict):
            raise InvalidArgumentsError(
                f"{name} is not a recipe, which is a mapping of Data-Juicer's keys.",
                next_actions=["Give `dataset_path`, `export_path`, `process` and such keys."],
            )
        first, _, rest = text.partition("\n")
        intent = _one_line(first.removeprefix(_INTENT)) if first.startswith(_INTENT) else ""
        unasked = f"{_APPROVAL}false"
        approvals = _APPROVALS.findall(text.removeprefix(f"{unasked}\n"))  # that is the intent
        return cls(
            user_intent=intent[:_MAX_INTENT] or "A recipe",
            recipe=Recipe.from_config(config, name),
            approval_required=rest.partition("\n")[0] != unasked or approvals != [unasked],
        )


def _one_line(text: str) -> str:
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


def read_plain_yaml(text: str) -> object:
    """Reads YAML that has no tags, anchors, aliases or repeated keys; else a ValueError."""
    from storage.reading.yamltext import read_yaml

    return read_yaml(text, plain=_MAX_DEPTH, unique=True)


@contextmanager
def explain_faults(what: str, next_action: str = "Correct it there.") -> Iterator[None]:
    """Turns what YAML and models raise into an InvalidArgumentsError that names the faults."""
    try:
        yield
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(map(str, each['loc'])) or 'the file'}:"
            f" {each['msg'].removeprefix('Value error, ')}"
            for each in error.errors(include_url=False)[:10]
        )
    except (ValueError, RecursionError) as error:
        faults = " ".join(str(error).split())
    else:
        return
    raise InvalidArgumentsError(f"{what} ({faults}).", next_actions=[next_action])


def as_yaml(config: dict[str, Any]) -> str:
    """Returns a configuration as YAML that every reader understands alike."""
    import yaml  # type: ignore[import-untyped]  # PyYAML has no types

    class Dumper(yaml.SafeDumper):  # type: ignore[misc]  # PyYAML has no types
        def represent_str(self, text: str) -> object:
            # Readers differ over texts that begin like a number or are not printable.
            is_plain = text.isprintable() and text[:1] not in _NUMERIC
            style = None if is_plain else '"'
            return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)

        def ignore_aliases(self, _data: object) -> bool:
            return True

    Dumper.add_representer(str, Dumper.represent_str)
    written: str = yaml.dump(config, Dumper=Dumper, sort_keys=False, allow_unicode=True)
    return written


def _read_steps(process: object) -> list[Any]:
    """Reads Data-Juicer's `process`; what is not a step is left for the model to refuse."""
    steps: list[Any] = []
    for entry in process if isinstance(process, list) else [process]:
        if isinstance(entry, dict) and len(entry) == 1:
            [(name, params)] = entry.items()
            steps.append({"name": name, "params": {} if params is None else params})
        else:
            steps.append(entry)
    return steps
