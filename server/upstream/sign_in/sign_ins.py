"""Stores sign-ins to other servers: in the keyring if there is one, else in private files."""

from __future__ import annotations

import logging
import time
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import BaseModel, ConfigDict, Field

from storage.keeping.atomic import atomic_file
from storage.locks import locked
from tools.core.errors import UnavailableError
from tools.sandbox.secrets.secrets import SERVICE, open_keyring

FOLDER = "sign-ins"
"""The folder of the files in the data directory."""

LEEWAY_SECONDS = 10.0
"""Time before its expiry at which a token is refreshed."""

_logger = logging.getLogger("toolcrib")


class SignIn(BaseModel):
    """The result of a sign-in, which is for one URL only."""

    model_config = ConfigDict(frozen=True)

    url: str
    tokens: OAuthToken = Field(repr=False)
    expires_at: float | None = None  # seconds since the epoch, as expires_in says nothing later
    client: OAuthClientInformationFull = Field(repr=False)
    metadata: OAuthMetadata | None = None  # where tokens are refreshed and revoked
    resource: ProtectedResourceMetadata | None = None
    missing: str = ""  # scopes that the server has asked for since

    @property
    def is_fresh(self) -> bool:
        """Whether its token has not expired."""
        return self.expires_at is None or time.time() < self.expires_at - LEEWAY_SECONDS

    def with_tokens(self, tokens: OAuthToken) -> SignIn:
        """Returns it with new tokens, and with what those leave out (RFC 6749, section 6)."""
        kept = {
            "scope": tokens.scope or self.tokens.scope,
            "refresh_token": tokens.refresh_token or self.tokens.refresh_token,
        }
        expires_at = None if tokens.expires_in is None else time.time() + tokens.expires_in
        tokens = tokens.model_copy(update=kept)
        return self.model_copy(update={"tokens": tokens, "expires_at": expires_at})


class SignIns:
    """The sign-ins of a data directory, by the names of the servers.

    Each has a file, which is empty if the keyring has the sign-in.
    """

    def __init__(self, data_dir: Path) -> None:
        self._directory = data_dir / FOLDER

    def version(self, server: str) -> str:
        """Returns a text that differs after each change; empty without a sign-in."""
        try:
            found = self._path(server).stat()
        except FileNotFoundError:
            return ""
        return f"{found.st_mtime_ns}-{found.st_ino}"

    def get(self, server: str, url: str) -> SignIn | None:
        """Returns the sign-in to a server at a URL; None if there is none. Blocks."""
        try:
            text = self._path(server).read_text()
            if not text:
                with open_keyring() as keyring:
                    text = keyring.get_password(SERVICE, self._entry(server)) or ""
            sign_in = SignIn.model_validate_json(text)
        except FileNotFoundError:
            return None
        except (ValueError, OSError, UnavailableError):  # whose text could quote a token
            _logger.warning("The sign-in to the server %r cannot be read.", server)
            return None
        return sign_in if sign_in.url == url else None

    def put(self, server: str, sign_in: SignIn) -> None:
        """Stores a sign-in. Blocks."""
        text, entry = sign_in.model_dump_json(exclude_none=True), self._entry(server)
        with suppress(UnavailableError), open_keyring() as keyring:
            keyring.set_password(SERVICE, entry, text)
            if keyring.get_password(SERVICE, entry) == text:  # one backend drops everything
                text = ""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with atomic_file(self._path(server), replace=True) as temporary:
            temporary.write_text(text)

    def remove(self, server: str) -> None:
        """Removes a sign-in. Blocks."""
        with suppress(UnavailableError), open_keyring() as keyring:
            keyring.delete_password(SERVICE, self._entry(server))
        self._path(server).unlink(missing_ok=True)

    def turn(self, server: str) -> AbstractContextManager[bool]:
        """Keeps others from changing a sign-in; yields whether it is our turn."""
        return locked(self._directory / f"{server}.lock", wait=False)

    def _path(self, server: str) -> Path:
        return self._directory / f"{server}.json"

    def _entry(self, server: str) -> str:
        return str(self._directory / server)
