"""Whether the part of a recipe that says how it is run can be read by Data-Juicer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tools.data.catalogue.catalogue import Catalogue
from tools.data.checks.findings import Findings
from tools.data.checks.values import faults
from tools.data.recipe import DatasetSpec, ProcessSpec, SystemSpec

FUSION = ("greedy", "probe")
"""The values of `fusion_strategy`, which the release's parser leaves open."""


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Keys with a dot as keys within another, which is how a recipe has them."""
    made: dict[str, Any] = {}
    for name, value in values.items():
        outer, _, inner = name.partition(".")
        if inner:
            made[outer] = {**made.get(outer, {}), inner: value}
        else:
            made[name] = value
    return made


def check_system(spec: SystemSpec, catalogue: Catalogue) -> Findings:
    """Whether its keys are there and fit, each and together."""
    values = dict(_flat(spec.model_dump(exclude_none=True), catalogue))
    elsewhere = {
        **dict.fromkeys(DatasetSpec.model_fields, "dataset"),
        **dict.fromkeys((*ProcessSpec.model_fields, "process"), "process"),
    }
    findings = Findings(
        [f"`{name}` belongs to the {elsewhere[name]} spec." for name in values if name in elsewhere]
    )
    own = {name: value for name, value in values.items() if name not in elsewhere}
    findings.errors += faults("", own, catalogue.system_options)
    findings.errors += _contradictions(own)
    return findings


def _flat(values: Mapping[str, Any], catalogue: Catalogue) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        is_outer = any(each.startswith(f"{name}.") for each in catalogue.options)
        if is_outer and isinstance(value, Mapping):
            yield from ((f"{name}.{inner}", each) for inner, each in value.items())
        else:
            yield name, value


def _contradictions(values: Mapping[str, Any]) -> Iterator[str]:
    """What the release refuses of keys that fit by themselves."""
    executor = values.get("executor_type", "default")
    count = values.get("partition.num_of_partitions")
    size = values.get("partition.size")
    if values.get("partition.mode") == "manual" and size and count not in {None, "auto"}:
        yield "In manual mode give partition.size or partition.num_of_partitions, not both."
    if values.get("fusion_strategy", FUSION[0]) not in FUSION:
        yield f"`fusion_strategy` is {values['fusion_strategy']!r}; send {' or '.join(FUSION)}."
    if values.get("elastic_juicer_adaptive_batching"):
        if executor == "default":
            yield "`elastic_juicer_adaptive_batching` needs an executor_type that is on Ray."
        if values.get("op_fusion"):
            yield "`elastic_juicer_adaptive_batching` and `op_fusion` exclude each other."
    if values.get("elastic_juicer_profile_seed") and (
        executor != "ray_partitioned" or not values.get("elastic_juicer_adaptive_batching")
    ):
        yield (
            "`elastic_juicer_profile_seed` needs elastic_juicer_adaptive_batching and "
            "executor_type 'ray_partitioned'."
        )
