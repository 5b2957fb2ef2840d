"""A home directory and a project, with skills as agents keep them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tools.agent.skillfiles.places import SkillPlaces
from tools.agent.skillfiles.skills import Skills
from tools.sandbox.files.sandbox import Sandbox


def write_skill(directory: Path, description: str = "Helps.", body: str = "Do it.") -> Path:
    """A skill that is called as its directory is."""
    directory.mkdir(parents=True, exist_ok=True)
    text = f"---\nname: {directory.name}\ndescription: {description}\n---\n{body}\n"
    (directory / "SKILL.md").write_text(text, encoding="utf-8")
    return directory


@pytest.fixture
def skill_at() -> Callable[..., Path]:
    return write_skill


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def skills_of(home: Path, root: Path) -> Callable[..., Skills]:
    """Makes the skills of that home directory, which is ann's, and that project."""

    def make(
        *directories: Path, discover: bool = True, protected: tuple[Path, ...] = (), **environ: str
    ) -> Skills:
        machine = Sandbox(Path(root.anchor), protected=protected)
        files = Sandbox(root, protected=protected)
        return Skills(
            SkillPlaces(
                files=files,
                machine=machine,
                directories=directories,
                discover=discover,
                home=home,
                variables=environ,
            ),
            owner="ann",
        )

    return make
