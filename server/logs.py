"""Configures logs: to stderr and a rotating file, never to stdout, which carries the protocol."""

from __future__ import annotations

import logging
import os
from functools import partial
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from typing import cast

from server.settings import Settings
from tools.core.unicode_safety import log_line

_FORMAT = "%(asctime)s %(levelname)s %(name)s[%(process)d]: %(message)s"


class _LineFormatter(logging.Formatter):
    """Formats log entries: indents further lines and escapes terminal control characters.

    Entries quote agents, programs and other servers, whose text must not look like an entry.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Returns the lines of an entry, all but the first indented."""
        lines = super().format(record).split("\n")
        return "\n    ".join(log_line(line, longest=None) for line in lines)


class _PrivateFileHandler(RotatingFileHandler):
    """A rotating file readable only by its owner: it may contain arguments of calls."""

    def _open(self) -> TextIOWrapper:
        opener = partial(os.open, mode=0o600)
        stream = open(self.baseFilename, self.mode, encoding="utf-8", opener=opener)  # noqa: SIM115  # only open() takes an opener; the handler closes it
        return cast("TextIOWrapper", stream)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  # logging's name
        """Ignores a full disk without a traceback on stderr, which has the line itself."""


def configure(settings: Settings) -> None:
    """Sends Toolcrib's log, and libraries' warnings, to stderr and the log file.

    If the log file is not writable, logs a warning and uses stderr alone.
    """
    formatter = _LineFormatter(_FORMAT)
    root = logging.getLogger()
    root.setLevel(logging.WARNING)
    _add(root, logging.StreamHandler(), formatter)
    logger = logging.getLogger("toolcrib")
    logger.setLevel(settings.log.level)
    logging.captureWarnings(capture=True)
    _quieten()
    path = settings.log_file
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handler = _PrivateFileHandler(
            path, maxBytes=settings.log.max_bytes, backupCount=settings.log.backups
        )
    except OSError as error:
        logger.warning("The log file %s cannot be written: %s.", path, error.strerror)
    else:
        _add(root, handler, formatter)


def show() -> None:
    """Shows the log as plain lines on stderr, for an interactive command."""
    handler = logging.StreamHandler()
    handler.setFormatter(_LineFormatter("%(message)s"))
    logging.basicConfig(handlers=[handler])
    logging.getLogger("toolcrib").setLevel(logging.INFO)
    _quieten()


def _quieten() -> None:
    """Suppresses tracebacks of the SDK's client: our own log has a line for each failure."""
    for name in ("client", "mcp.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _add(root: logging.Logger, handler: logging.Handler, formatter: logging.Formatter) -> None:
    handler.setFormatter(formatter)
    root.addHandler(handler)
