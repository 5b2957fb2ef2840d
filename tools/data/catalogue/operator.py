"""An operator of Data-Juicer, as its release describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tools.data.catalogue.kinds import Kind, Runs

_FILES = {
    "agent_bad_case_signal_mapper": ("calibration_json_path",),
    "document_minhash_deduplicator": ("tokenizer_model",),
    "document_minhash_deduplicator_with_uid": ("tokenizer_model",),
    "flagged_words_filter": ("flagged_words_dir",),
    "generate_qa_from_examples_mapper": ("seed_file",),
    "human_preference_annotation_mapper": ("label_config_file",),
    "image_ohem_selector": ("score_file",),
    "python_file_mapper": ("file_path",),
    "ray_bts_minhash_deduplicator": ("tokenizer_model",),
    "ray_bts_minhash_deduplicator_with_uid": ("tokenizer_model",),
    "ray_bts_minhash_cpp_deduplicator": ("tokenizer_model",),
    "stopwords_filter": ("stopwords_dir",),
}
"""Parameters that name a file or directory of the user's, which the operator reads."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of an operator, a formatter or a configuration.

    `schema` is empty where it takes any value; `computed` is a default as it is written, of which
    only running it would tell the value; `why_not` says why the default set-up cannot do it.
    """

    name: str
    schema: Mapping[str, Any]
    description: str
    type: str = ""
    default: Any = None
    computed: str = ""
    is_required: bool = False
    why_not: str = ""

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Parameter:
        """Returns the parameter that a record describes."""
        return cls(**said, is_required=said.keys().isdisjoint({"default", "computed"}))


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator, with its own parameters and without those of all of its kind.

    `tags` say what it works on and needs, `modes` which executors run it; `runs` and `why_not`
    whether the default set-up runs it ("here"), only `--full`, or none ("no").
    """

    name: str
    type: Kind
    tags: tuple[str, ...]
    modes: tuple[str, ...]
    description: str
    parameters: tuple[Parameter, ...]
    runs: Runs = "here"
    why_not: str = ""

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Operator:
        """Returns the operator that a record describes."""
        lists = {key: tuple(said[key]) for key in ("tags", "modes")}
        parameters = tuple(map(Parameter.of, said["parameters"]))
        return cls(**{**said, **lists, "parameters": parameters})

    @property
    def summary(self) -> str:
        """What it does, in a line."""
        return self.description.partition("\n")[0]


def file_parameters(name: str, params: Mapping[str, Any]) -> list[str]:
    """Returns which of an operator's given parameters name a file or directory to read."""
    return [each for each in _FILES.get(name, ()) if isinstance(params.get(each), str)]
