import json
import os
from pathlib import Path

import anyio
import pytest

from tools.core.errors import UnavailableError
from tools.data.release import VERSION
from tools.data.running.environment import DataEnvironment, Extent, Installed, _link_ffmpeg
from tools.functions.environment import python_of


async def say_nothing(_line: str) -> None:
    await anyio.lowlevel.checkpoint()


def there(directory: Path) -> set[str]:
    return {each.name for each in directory.iterdir() if each.name != "cache"}


def pretend(environment: DataEnvironment, version: str) -> None:
    """Puts a directory there that says of itself that it is whole."""
    python_of(environment.path).parent.mkdir(parents=True)
    python_of(environment.path).touch()
    mark = json.dumps({"version": version, "extent": "minimal", "base": "/opt/python"})
    (environment.path / "toolcrib.json").write_text(mark)


def test_what_is_not_set_up_is_unavailable_with_the_command(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError) as raised:
        DataEnvironment(tmp_path, environ={}).python()
    assert "`toolcrib data setup`" in raised.value.next_actions[0]


def test_another_release_than_recipes_are_made_for_is_unavailable(tmp_path: Path) -> None:
    environment = DataEnvironment(tmp_path, environ={})
    pretend(environment, "0.9")
    with pytest.raises(UnavailableError, match=rf"0\.9.*{VERSION}"):
        environment.python()


def test_what_lacks_its_mark_is_not_taken_for_whole(tmp_path: Path) -> None:
    environment = DataEnvironment(tmp_path, environ={})
    pretend(environment, VERSION)
    assert environment.installed() == Installed(VERSION, Extent.MINIMAL, "/opt/python")
    assert environment.readable() == (environment.path, Path("/opt/python"))
    (environment.path / "toolcrib.json").write_text('{"version"')  # as when the disk was full
    assert environment.installed() is None


@pytest.mark.parametrize("version", ["0.9", VERSION])  # the second with other pins
async def test_a_set_up_that_fails_leaves_what_was_there(
    tmp_path: Path, nowhere: dict[str, str], version: str
) -> None:
    environment = DataEnvironment(tmp_path, environ=nowhere)
    pretend(environment, version)
    with pytest.raises(UnavailableError, match="py-data-juicer"):
        await environment.set_up(Extent.MINIMAL, say_nothing)
    assert environment.installed() == Installed(version, Extent.MINIMAL, "/opt/python")
    assert there(tmp_path) == {"data-juicer", "data-juicer.lock"}


async def test_a_set_up_that_is_cancelled_leaves_nothing(tmp_path: Path) -> None:
    environment = DataEnvironment(tmp_path, environ=os.environ)
    with anyio.CancelScope() as scope:

        async def cancel(_line: str) -> None:
            scope.cancel()
            await anyio.lowlevel.checkpoint()

        await environment.set_up(Extent.MINIMAL, cancel)
    assert scope.cancelled_caught
    assert environment.installed() is None
    assert there(tmp_path) == {"data-juicer.lock"}


async def test_what_is_removed_is_gone(tmp_path: Path) -> None:
    environment = DataEnvironment(tmp_path, environ={})
    assert not await environment.remove(say_nothing)
    pretend(environment, VERSION)
    assert await environment.remove(say_nothing)
    assert not environment.path.exists()


@pytest.mark.data
async def test_what_was_set_up_has_its_release_and_is_not_made_again(
    data_juicer: DataEnvironment,
) -> None:
    said = await anyio.run_process(
        [data_juicer.python(), "-c", "import data_juicer; print(data_juicer.__version__)"]
    )
    assert said.stdout.decode().split() == [VERSION]
    assert not await data_juicer.set_up(Extent.MINIMAL, say_nothing)


def test_the_ffmpeg_of_a_package_is_found_by_its_name_wherever_it_is_moved(tmp_path: Path) -> None:
    made = tmp_path / "unfinished"
    package = made / "lib" / "python3.11" / "site-packages" / "imageio_ffmpeg" / "binaries"
    package.mkdir(parents=True)
    (made / "bin").mkdir()
    (package / "ffmpeg-linux").write_text("It.")
    _link_ffmpeg(made)
    assert (made.rename(tmp_path / "whole") / "bin" / "ffmpeg").read_text() == "It."
