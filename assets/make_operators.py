"""Makes what Toolcrib knows of Data-Juicer without it: `tools/data/catalogue/*.json*`.

    python assets/make_operators.py [--wheel FILE]

The release's source is read as it lies in its wheel, which is downloaded from PyPI unless it is
given; nothing of it is installed or run. The same wheel gives the same bytes always.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from data_juicer_source.classes import Classes, calls_of, value_of
from data_juicer_source.configuration import (
    formatters_of,
    options_of,
    routed_formats,
    strategies_of,
    supported_formats,
)
from data_juicer_source.operators import common_parameters, operators_of
from data_juicer_source.terms import terms_of

from tools.data.release import VERSION

WHEEL_SHA256 = "de77979969b574e841f947d2171028b5e15a4eeea2b2802c528b5ef1758e9c8f"
TARGET = Path(__file__).parents[1] / "tools/data/catalogue"
AVAILABILITY = Path(__file__).parent / "data_juicer_source/availability.json"
"""What the default set-up cannot run, and why; tests run operators and keys to hold it.

`reads_files` are parameters that name a file or directory of the user's, which the operator reads;
`only_on_ray` are operators whose code refuses other executors, though their class lists them.
"""


def main() -> None:
    """Makes the files."""
    parser = argparse.ArgumentParser(description="Makes the catalogue of operators.")
    parser.add_argument("--wheel", type=Path, help=f"py-data-juicer {VERSION}, if it is at hand")
    wheel = parser.parse_args().wheel
    with tempfile.TemporaryDirectory() as folder:
        sources = _sources(wheel or _download(Path(folder)))
    for name, text in made(sources).items():
        TARGET.joinpath(name).write_text(text, encoding="utf-8")
        sys.stdout.write(f"{name}: {len(text.encode())} bytes\n")


def made(sources: Mapping[str, str]) -> dict[str, str]:
    """The files, from the release's sources by their paths in the wheel."""
    classes = Classes(sources)
    listed = json.loads(AVAILABILITY.read_text(encoding="utf-8"))
    reads_files, only_on_ray = listed.pop("reads_files"), listed.pop("only_on_ray")
    keys = {name: why_not for why_not, names in listed.pop("options").items() for name in names}
    limits = {
        name: {"runs": runs, "why_not": why_not}
        for runs, reasons in listed.items()
        for why_not, names in reasons.items()
        for name in names
    }
    operators = sorted(
        ({**each, **limits.get(each["name"], {})} for each in operators_of(classes)),
        key=lambda each: str(each["name"]),
    )
    for each in operators:
        if each["name"] in only_on_ray:
            each["modes"] = [mode for mode in each["modes"] if mode != "default"]
    release = {
        "version": VERSION,
        "reads_files": reads_files,
        "common": common_parameters(classes),
        "options": [
            each | ({"why_not": keys[each["name"]]} if each["name"] in keys else {})
            for each in options_of(sources["data_juicer/config/config.py"])
        ],
        "formatters": list(formatters_of(classes)),
        "strategies": list(strategies_of(sources["data_juicer/core/data/load_strategy.py"])),
        "export_types": {
            "default": routed_formats(sources["data_juicer/core/exporter.py"]),
            "ray": supported_formats(sources["data_juicer/core/ray_exporter.py"]),
        },
        "validators": [
            str(value_of(call.args[0], {})[0])
            for call in calls_of(sources["data_juicer/core/data/data_validator.py"], "register")
        ],
    }
    counts = [terms_of(each) for each in operators]
    terms = sorted({term for each in counts for term in each})
    index = {
        "lengths": [sum(each.values()) for each in counts],
        "terms": {
            term: {place: each[term] for place, each in enumerate(counts) if term in each}
            for term in terms
        },
    }
    return {
        "operators.jsonl": "".join(f"{_json(each)}\n" for each in operators),
        "release.json": f"{_json(release)}\n",
        "terms.json": f"{_json(index)}\n",
    }


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _download(folder: Path) -> Path:
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder))
    subprocess.run([*pip, f"py-data-juicer=={VERSION}"], check=True)  # noqa: S603  # constants
    return next(folder.glob("*.whl"))


def _sources(wheel: Path) -> dict[str, str]:
    found = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if found != WHEEL_SHA256:
        sys.exit(f"{wheel} has the SHA-256 {found}, not {WHEEL_SHA256}.")
    with zipfile.ZipFile(wheel) as archive:
        return {
            name: archive.read(name).decode()
            for name in archive.namelist()
            if name.startswith("data_juicer/") and name.endswith(".py")
        }


if __name__ == "__main__":
    main()
