import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from server import logs
from server.settings.settings import LogSettings, Settings

LOGGER = logging.getLogger("toolcrib")


@pytest.fixture(autouse=True)
def logging_restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level, own_level = list(root.handlers), root.level, LOGGER.level
    root.handlers.clear()  # another test may have left one
    yield
    for handler in root.handlers:
        handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)
    LOGGER.setLevel(own_level)
    logging.captureWarnings(capture=False)


def configured(directory: Path, **log: Any) -> Settings:
    settings = Settings(data_dir=directory / "data", log=LogSettings(**log))
    logs.configure(settings)
    return settings


def test_a_record_goes_to_stderr_and_the_file_and_never_to_stdout(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = configured(tmp_path)
    LOGGER.getChild("part").info("grüße %d", 7)
    written, logged = capsys.readouterr()
    assert written == ""
    assert logged.endswith("grüße 7\n")
    assert settings.log_file.read_text(encoding="utf-8") == logged


def test_the_log_is_private_to_its_user(tmp_path: Path) -> None:
    settings = configured(tmp_path)
    assert settings.log_file.stat().st_mode & 0o777 == 0o600
    assert settings.log_file.parent.stat().st_mode & 0o777 == 0o700


def test_the_level_is_the_settings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configured(tmp_path, level="WARNING")
    LOGGER.info("quiet")
    LOGGER.warning("loud")
    logged = capsys.readouterr().err
    assert "loud" in logged
    assert "quiet" not in logged


def test_libraries_are_heard_from_warnings_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configured(tmp_path, level="DEBUG")
    logging.getLogger("library").info("chatter")
    logging.getLogger("library").warning("trouble")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(capture=True)
        warnings.warn("deprecated", stacklevel=1)
        logging.captureWarnings(capture=False)
    logged = capsys.readouterr().err
    assert "chatter" not in logged
    assert "trouble" in logged
    assert "deprecated" in logged


def test_a_full_log_is_rotated_and_only_so_many_are_kept(tmp_path: Path) -> None:
    settings = configured(tmp_path, max_bytes=10_000, backups=2)
    for _ in range(400):
        LOGGER.info("x" * 100)
    kept = sorted(settings.log_file.parent.iterdir())
    assert [path.name for path in kept] == ["toolcrib.log", "toolcrib.log.1", "toolcrib.log.2"]
    assert all(path.stat().st_size <= 10_000 for path in kept)
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in kept)


def test_without_a_writable_file_it_is_stderr_with_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "logs").touch()
    settings = configured(tmp_path)
    LOGGER.info("still heard")
    logged = capsys.readouterr().err
    assert f"The log file {settings.log_file} cannot be written: " in logged
    assert "still heard" in logged


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no disk that is full")
def test_a_full_disk_leaves_stderr_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = configured(tmp_path)
    settings.log_file.unlink()
    settings.log_file.symlink_to("/dev/full")
    configured(tmp_path)
    LOGGER.info("still heard")
    logged = capsys.readouterr().err
    with pytest.raises(OSError, match="No space"):
        logging.getLogger().handlers[-1].close()
    assert "still heard" in logged
    assert "Traceback" not in logged


def test_what_is_quoted_passes_for_no_entry_and_steers_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = configured(tmp_path)
    forged = "x\n2026-01-01 00:00:00,000 CRITICAL toolcrib[1]: forged\r\x1b[2J\u202e\x9b"
    LOGGER.warning("quoted: %s", forged)
    LOGGER.error("failed", exc_info=ValueError(forged))
    for logged in (capsys.readouterr().err, settings.log_file.read_text(encoding="utf-8")):
        entries = [line for line in logged.splitlines() if not line.startswith("    ")]
        assert len(entries) == 2
        assert not set("\r\x1b\u202e\x9b") & set(logged)
        assert "CRITICAL" in logged
