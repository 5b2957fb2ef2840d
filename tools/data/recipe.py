"""A recipe: which data, which operators in their order, and how they are run.

Its fields are the keys of Data-Juicer's own configuration; `to_config` gives that, and `to_yaml`
the file that `dj-process --config` takes.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, FiniteFloat, ValidationError

from tools.core.errors import InvalidArgumentsError
from tools.core.result import ToolModel

Executor = Literal["default", "ray", "ray_partitioned"]
FileOrDirectory = Annotated[str, Field(max_length=4_096)]
Key = Annotated[str, Field(min_length=1, max_length=256)]

APPROVAL = "# approval_required: "
"""Begins the line of a saved plan that says whether a person is asked before it runs."""

MOST_INTENT = 2_000
"""Characters of what a plan is for."""

MOST_LEVELS = 32
"""How deep a recipe may be nested."""

_NUMERIC = tuple("+-.0123456789")

INTENT = "# "
"""Begins its first line, which says what it is for."""


class DatasetSource(ToolModel):
    """One of the places that data comes from; its strategy takes more keys than these.

    Attributes:
        type: Where it is.
        source: Of remote data, the kind of place, as `list_dataset_load_strategies` tells them.
        path: The file, directory or name there.
        weight: Its share of a sample, against those of the others.
    """

    model_config = ConfigDict(extra="allow")

    type: Literal["local", "remote"] = "local"
    source: Annotated[str | None, Field(description="Kind of remote place")] = None
    path: Annotated[FileOrDirectory | None, Field(description="File, directory or name there")] = (
        None
    )
    weight: Annotated[FiniteFloat | None, Field(ge=0, description="Share of a sample")] = None


class DatasetMixture(ToolModel):
    """Data from one place or several.

    Attributes:
        configs: The places.
        max_sample_num: How many samples are taken of them all; None takes all.
    """

    model_config = ConfigDict(extra="forbid")

    configs: Annotated[list[DatasetSource], Field(min_length=1, max_length=1000)]
    max_sample_num: Annotated[int | None, Field(ge=1, description="Samples to take")] = None


class DatasetSpec(ToolModel):
    """What is read, what is written, and under which keys a sample has its parts.

    Attributes:
        dataset_path: A file or directory, relative to the root; or else `dataset`.
        dataset: Data from several places, or from a remote one.
        generated_dataset_config: A formatter (`type`) that makes the data, and its arguments.
        export_path: The file that is written, relative to the root.
        export_type: Its format; None goes by its name.
        text_keys: Where a sample has its text; operators take the first.
        image_key: Where it has its list of images.
        image_bytes_key: Where it has the bytes of its images.
        audio_key: Where it has its list of audio files.
        video_key: Where it has its list of video files.
        suffixes: Endings of the files that are read in a directory.
        keep_stats_in_res_ds: Whether what filters computed is written too.
        keep_hashes_in_res_ds: Whether what deduplicators computed is written too.
        load_jsonl_lenient: Whether lines of JSONL that cannot be read are left out.
        load_dataset_kwargs: More arguments of the reader.
        validators: Checks of the data that is read, each with its `type`.
    """

    model_config = ConfigDict(extra="forbid")

    dataset_path: Annotated[
        FileOrDirectory | None,
        Field(description="File or directory, relative to the root; or else dataset"),
    ] = None
    dataset: Annotated[
        DatasetMixture | None, Field(description="Several places {configs, max_sample_num}")
    ] = None
    generated_dataset_config: Annotated[
        dict[str, Any] | None, Field(description="Formatter (type) that makes data, and arguments")
    ] = None
    export_path: Annotated[FileOrDirectory, Field(min_length=1, description="File to write")]
    export_type: Annotated[str | None, Field(description="Its format; default: by name")] = None
    text_keys: Annotated[list[Key] | None, Field(description="Where a sample has text")] = None
    image_key: Annotated[Key | None, Field(description="Where it has its images")] = None
    image_bytes_key: Annotated[Key | None, Field(description="Where it has their bytes")] = None
    audio_key: Annotated[Key | None, Field(description="Where it has its audio files")] = None
    video_key: Annotated[Key | None, Field(description="Where it has its video files")] = None
    suffixes: Annotated[list[str] | None, Field(description="Endings of files to read")] = None
    keep_stats_in_res_ds: Annotated[bool | None, Field(description="Write filters' stats")] = None
    keep_hashes_in_res_ds: Annotated[bool | None, Field(description="Write hashes")] = None
    load_jsonl_lenient: Annotated[
        bool | None, Field(description="Leave out lines of JSONL that cannot be read")
    ] = None
    load_dataset_kwargs: Annotated[
        dict[str, Any] | None, Field(description="More arguments of the reader")
    ] = None
    validators: Annotated[
        list[dict[str, Any]] | None, Field(description="Checks of the data, each with its type")
    ] = None

    @property
    def paths(self) -> list[str]:
        """The files and directories that are read; of remote data what they are called there."""
        sources = self.dataset.configs if self.dataset else ()
        return [path for path in (self.dataset_path, *(each.path for each in sources)) if path]


class Step(ToolModel):
    """One operator with its parameters.

    Attributes:
        name: The operator.
        params: Its parameters; what is left out has the operator's default.
    """

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=256, description="The operator")]
    params: Annotated[dict[str, Any], Field(description="Its parameters")] = Field(
        default_factory=dict
    )


class ProcessSpec(ToolModel):
    """The operators in their order.

    Attributes:
        operators: Each with its parameters.
        custom_operator_paths: Files or directories with operators of one's own.
    """

    model_config = ConfigDict(extra="forbid")

    operators: Annotated[list[Step], Field(min_length=1, max_length=200)]
    custom_operator_paths: Annotated[
        list[FileOrDirectory] | None, Field(description="Files with operators of your own")
    ] = None


class SystemSpec(ToolModel):
    """How a recipe is run; beside these it takes every key that `list_system_config` tells.

    Attributes:
        executor_type: One process ("default"), or a Ray cluster.
        np: Processes at once.
    """

    model_config = ConfigDict(extra="allow")

    executor_type: Executor = "default"
    np: Annotated[int | None, Field(ge=1, description="Processes at once")] = None


class Recipe(ToolModel):
    """What Data-Juicer is to do.

    Attributes:
        dataset: Which data.
        process: Which operators.
        system: How they are run.
    """

    model_config = ConfigDict(extra="forbid")

    dataset: DatasetSpec
    process: ProcessSpec
    system: SystemSpec = Field(default_factory=SystemSpec)

    @property
    def on_cluster(self) -> bool:
        """Whether a Ray cluster runs it."""
        return self.system.executor_type != "default"

    def to_config(self) -> dict[str, Any]:
        """The recipe as Data-Juicer's configuration, without what has its default."""
        dataset = self.dataset.model_dump(exclude_none=True)
        path = dataset.get("dataset_path")
        if path and shlex.quote(path) != path:  # that key's value is split like a command line
            del dataset["dataset_path"]
            dataset["dataset"] = {"configs": [{"type": "local", "path": path}]}
        custom = self.process.custom_operator_paths
        return {
            **dataset,
            **({"custom_operator_paths": custom} if custom else {}),
            **self.system.model_dump(exclude_none=True),
            "process": [{each.name: each.params or None} for each in self.process.operators],
        }

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Recipe:
        """The recipe that a configuration is.

        Raises:
            InvalidArgumentsError: If it is none; it says where.
        """
        rest = dict(config)
        dataset = {key: rest.pop(key) for key in DatasetSpec.model_fields if key in rest}
        if isinstance(dataset.get("text_keys"), str):
            dataset["text_keys"] = [dataset["text_keys"]]
        process: dict[str, Any] = {"operators": _steps(rest.pop("process", []))}
        if "custom_operator_paths" in rest:
            process["custom_operator_paths"] = rest.pop("custom_operator_paths")
        try:
            return cls.model_validate({"dataset": dataset, "process": process, "system": rest})
        except ValidationError as error:
            raise _unreadable(error) from None


class Plan(ToolModel):
    """A recipe with what it is for.

    Attributes:
        user_intent: What it is for.
        recipe: What is done.
        approval_required: Whether a person is asked before it runs.
    """

    model_config = ConfigDict(extra="forbid")

    user_intent: Annotated[str, Field(max_length=MOST_INTENT, pattern=r"\S")]
    recipe: Recipe
    approval_required: bool = True

    def to_yaml(self) -> str:
        """The file that `dj-process --config` takes; what is no key of its stands in comments."""
        config = as_yaml(self.recipe.to_config())
        asks = "true" if self.approval_required else "false"
        return f"{INTENT}{_line(self.user_intent)}\n{APPROVAL}{asks}\n{config}"

    @classmethod
    def from_yaml(cls, text: str) -> Plan:
        """The plan that such a file is; approval is required unless its own line says otherwise.

        Raises:
            InvalidArgumentsError: If it is none; it says where.
        """
        from storage.reading.yamltext import read_yaml

        try:
            config = read_yaml(text, plain=MOST_LEVELS)
        except (ValueError, RecursionError) as error:
            raise InvalidArgumentsError(
                f"The recipe is not YAML: {' '.join(str(error).split())}",
                next_actions=["Put it right at that place."],
            ) from None
        if not isinstance(config, dict):
            raise InvalidArgumentsError(
                "The recipe is not a mapping of Data-Juicer's keys.",
                next_actions=[
                    "Give a file of such keys: `dataset_path`, `export_path`, `process`."
                ],
            )
        first, _, rest = text.partition("\n")
        said = _line(first.removeprefix(INTENT)) if first.startswith(INTENT) else ""
        return cls(
            user_intent=said[:MOST_INTENT] or "A recipe",
            recipe=Recipe.from_config(config),
            approval_required=rest.partition("\n")[0] != f"{APPROVAL}false",
        )


def _line(text: str) -> str:
    """A text in one line that a comment can hold."""
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


def as_yaml(config: dict[str, Any]) -> str:
    """Returns a configuration as YAML that every reader understands alike."""
    import yaml  # type: ignore[import-untyped]  # PyYAML has no types

    class Dumper(yaml.SafeDumper):  # type: ignore[misc]  # PyYAML has no types
        """Writes in quotes what begins like a number or is not printed: readers differ there."""

        def represent_str(self, text: str) -> object:
            """A text, in quotes where it could be read as something else."""
            is_plain = text.isprintable() and text[:1] not in _NUMERIC
            style = None if is_plain else '"'
            return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)

        def ignore_aliases(self, _data: object) -> bool:
            """Nothing is written as a reference to what stands elsewhere."""
            return True

    Dumper.add_representer(str, Dumper.represent_str)
    written: str = yaml.dump(config, Dumper=Dumper, sort_keys=False, allow_unicode=True)
    return written


def _steps(process: object) -> list[Any]:
    """Data-Juicer's `process` as steps; what is none is left for the model to refuse."""
    return [_step(each) for each in process] if isinstance(process, list) else [process]


def _step(entry: object) -> object:
    if not isinstance(entry, dict) or len(entry) != 1:
        return entry
    [(name, params)] = entry.items()
    return {"name": name, "params": {} if params is None else params}


def _unreadable(error: ValidationError) -> InvalidArgumentsError:
    return InvalidArgumentsError(
        f"This is no recipe ({faults_of(error)}).", next_actions=["Put the named keys right."]
    )


def faults_of(error: ValidationError) -> str:
    """Returns which keys are wrong, and how."""
    return "; ".join(
        f"{'.'.join(map(str, each['loc']))}: {each['msg']}"
        for each in error.errors(include_url=False)[:10]
    )
