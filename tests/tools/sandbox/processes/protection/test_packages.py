"""Packages: a large installation is neither taken apart nor in the way of the next one."""

from typing import Any

import pytest

pytestmark = [pytest.mark.boundary, pytest.mark.slow]

INSTALL = """
from pathlib import Path
for number in range(600):
    package = Path("node_modules", f"@scope{number % 7}", f"package{number}")
    for folder in ("", "lib", "dist/esm", "dist/cjs", "node_modules/inner"):
        (package / folder).mkdir(parents=True, exist_ok=True)
        for file in range(10):
            (package / folder / f"{file}.js").write_text("x")
    if number % 10 == 0:
        for name in (".vscode/settings.json", ".husky/pre-commit", ".github/workflows/ci.yml",
                     ".idea/x.iml", ".devcontainer.json", ".editorconfig", ".envrc"):
            (package / name).parent.mkdir(parents=True, exist_ok=True)
            (package / name).write_text("x")
"""
"""What an installation of 30,000 files does, as packages are published."""

COUNT = "find node_modules -type f | wc -l"


async def test_thirty_thousand_files_of_packages_are_installed_used_and_removed(
    confined: Any,
) -> None:
    (confined.root / "install.py").write_text(INSTALL)
    for script, output in (
        (f"python3 install.py && {COUNT}", "30420\n"),
        (f"echo more > node_modules/.lock && {COUNT}", "30421\n"),
        ("rm -rf node_modules && ls", "install.py\n"),
    ):
        found = await confined.call("bash", command=script)
        assert (found["exit_code"], found["stdout"], found["notes"]) == (0, output, [])
