"""Removes secrets from recorded arguments and results, and shortens them."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from functools import cache, lru_cache
from typing import Any

from storage.reading.shorten import clip

REDACTED = "[redacted]"  # the replacement of a secret
CUT = "…"
LEVELS = 6  # maximum levels of nesting that are kept
ITEMS = 20  # maximum entries of a list or an object that are kept
KEY_CHARACTERS = 64
WORTH = 16
"""The minimum cost of a value in characters, so that a list of a thousand zeros is cut too."""

MOST_BITS = 128
"""A longer number is recorded as its length, since writing it out takes quadratic time."""

_SECRET_KEY = re.compile(
    r"passw|passcode|passphrase|pwd|token|secret|apikey|accesskey|privatekey|signingkey"
    r"|authorization|cookie|credential|bearer|^auth$|^pin$|^otp$|(?<!by)(?<!com)pass$"
)
_NO_LETTER = re.compile(r"[\W_]+")

_NAMES = ("passw", "passcode", "passphrase", "pwd", "secret", "token", "key", "credential")
_WORD = (  # a word containing one of these, scanned once
    r"(?=[\w-]*(?:passw(?:or)?d|passcode|passphrase|pwd|secret|token|api[-_]?key"
    r"|access[-_]?key|private[-_]?key|credential))(?>[\w-]+)"
)
_NAMED = rf"(?<![\w-]){_WORD}"
_VALUE = r"(?:\"[^\"\r\n]*\"?|'[^'\r\n]*'?|[^\s\"';|&][^\s;|&]*)"
_OPENINGS = ("sk-", "pk-", "rk-", "_", "glpat-", "xox", "akia", "aiza", "eyj")

_RULES = tuple(
    (frozenset(hints), pattern)
    for hints, pattern in (
        (
            ("authorization", "cookie"),
            (
                r"(\b(?:proxy-)?authorization\b[\"']?\s{0,3}[:=]\s{0,3}[\"']?"
                r"|\b(?:set-)?cookie\b[\"']?\s{0,3}[:=]\s{0,3}[\"']?)[^\r\n\"']+"
            ),
        ),
        (("bearer", "basic"), r"(\b(?:bearer|basic)\s{1,3})[\w.~+/-]{6,}=*"),
        (
            _NAMES,
            (
                rf"({_NAMED}\\?[\"']?\s{{0,3}}[:=]\s{{0,3}})"
                r"(?:\\\"[^\"\r\n]*\"?|(?:\"(?:[^\"\\\r\n]|\\[^\r\n])*\"?|'[^'\r\n]*'?"
                r"|\\[^\r\n\"]|[^\s,;&\"'\\])+)"  # a word of a shell may have several pieces
            ),
        ),
        (("://",), r"(\b[a-z][\w+.-]{1,20}://)[^\s/@]+(?=@)"),
        (
            _OPENINGS,
            (
                r"\b(?:[spr]k[-_][\w-]{16,}|gh[a-z]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
                r"|xox[a-z]-[\w-]{10,}|akia[a-z0-9]{12,}|aiza[\w-]{30,}"
                r"|eyj[\w-]{8,}\.[\w-]{8,}\.[\w-]*)"
            ),  # the last is a JSON web token, RFC 7519
        ),
        (  # options that pass a password to a program
            _NAMES,
            rf"((?<![\w-])--?(?![\w-]*-(?:stdin|file)\b){_WORD}\s{{1,3}})(?![-<]){_VALUE}",
        ),
        (
            ("curl",),
            r"(\s(?:-[a-z]{0,8}u|--user|--proxy-user)[=\s]{0,2}[\"']?[^\s:\"']{1,64}:)[^\s\"']+",
        ),
        (("mysql", "mariadb"), rf"(\s(?-i:-p)){_VALUE}"),
        (("sshpass", "login", "mongo"), rf"(\s(?-i:-p)\s{{0,3}})(?!-){_VALUE}"),
        (("zip", "sqlcmd", "mosquitto"), rf"(\s(?-i:-P)\s{{0,3}})(?!-){_VALUE}"),
        (
            ("7z", "rar ", "useradd", "usermod", "twine", "cqlsh", "rdesktop", "ncftp"),
            rf"(\s[\"']?(?-i:-h?p)\s{{0,3}})(?!-){_VALUE}",
        ),
        (("ldap",), rf"(\s(?-i:-w)\s{{0,3}})(?!-){_VALUE}"),
        (("-storepass", "-keypass"), rf"(\s-(?:store|key)pass\s{{1,3}}){_VALUE}"),
        (("curl",), rf"(\s(?:-b|--cookie)[=\s]\s{{0,2}}){_VALUE}"),
        (
            ("<<<",),
            (
                r"(\b(?:sudo|su|passwd|login|cryptsetup|pass|read\s{1,3}-[a-z]{0,4}s)\b"
                rf"[^|;&\r\n<]{{0,200}}<<<\s{{0,3}}){_VALUE}"
            ),
        ),
        (("redis-cli",), rf"(\s-a\s{{0,3}})(?!-){_VALUE}"),
        (
            ("echo", "printf"),
            (
                r"(\b(?:echo|printf)\s{1,3}"
                r"(?:-[ne]{1,2}\s{1,3}|[\"']?%s(?:\\n)?[\"']?\s{1,3})?)"
                rf"{_VALUE}(?=\s{{0,3}}\|\s{{0,3}}(?:sudo|su|(?:ch)?passwd|cryptsetup"
                r"|[\w-]{1,20}\s{1,3}(?:auth\s{1,3})?login)\b)"
            ),
        ),
        (
            ("key=", "sig=", "signature=", "auth=", "pass=", "pin=", "pass:", "/p:"),
            (
                r"([?&](?:key|sig|signature|auth|pass)=|(?<![^\s_-])(?:pass|auth|pin)="
                r"|\bsshpass=|(?<![^\s\"'])(?:/?pass|/p):)[^\s&\"']+"
            ),
        ),
        (("--pass",), rf"(\s--pass[=\s]\s{{0,2}})(?![-<]){_VALUE}"),
        (("http", "--auth"), r"(\s(?:-a|--auth)[=\s]\s{0,2}[\"']?[\w.@-]{1,64}:)[^\s\"']+"),
        (
            ("password", "identified"),
            r"(\b(?:password|identified\s{1,3}by)\s{1,3})(?:\"[^\"\r\n]*\"?|'[^'\r\n]*'?)",
        ),
        (("smbclient",), r"(\s-u\s{0,3}[\"']?[^\s%\"']{1,64}%)[^\s\"']+"),
        (("sqlplus", "impdp", "expdp"), r"(\s[\w.]{1,64}/)[^\s@/]+"),
        (  # commands that take a secret as an argument
            ("login", "unlock", "passw", "_passphrase", "_user", "_authtoken", "obscure", "_key"),
            (
                r"(\b(?:(?:cargo|vault)\s{1,3}login|bw\s{1,3}unlock|rclone\s{1,3}obscure"
                r"|wpa_passphrase\s{1,3}\S{1,64}"
                r"|htpasswd\s{1,3}-\w{0,4}b\w{0,4}(?:\s{1,3}\S{1,255}){2}"
                r"|rabbitmqctl\s{1,3}(?:add_user|change_password)\s{1,3}\S{1,64}"
                r"|(?:mysqladmin|nmcli|neo4j-admin)\b[^|;&\r\n]{0,200}\b(?:set-initial-)?password"
                rf"|\w{{0,64}}(?:_authtoken|_access_key))\s{{1,3}})(?![-<]){_VALUE}"
            ),
        ),
        (
            ("private key-----",),
            r"-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END [A-Z ]*PRIVATE KEY-----)?",
        ),
    )
)
"""Patterns of secrets: cheap hints to search first, then the pattern; its first group is kept."""

_HINTS = tuple(frozenset[str]().union(*(hints for hints, _ in _RULES)))


def redacted(value: Mapping[str, Any], budget: int, names: Collection[str] = ()) -> dict[str, Any]:
    """Returns an object for recording: JSON without secrets, of about `budget` characters.

    A value whose key names a secret is replaced completely, whatever its type and depth; so is
    anything in texts that looks like a secret. Values nested too deeply, or beyond the budget, are
    replaced by an ellipsis.

    `names` are those of stored secrets, which are not secret themselves.
    """
    return _Budget(budget, names).mapping(value, LEVELS)


def redacted_text(text: str, limit: int) -> str:
    """Returns the beginning of a text for recording, without anything that looks like a secret."""
    looked_at = text[: 2 * limit]
    if len(looked_at) < len(text):  # drop the last word, which may be half a secret
        looked_at = looked_at.rpartition(" ")[0] or looked_at
    lowered = looked_at.lower()
    if found := [hint for hint in _HINTS if hint in lowered]:
        for hints, pattern in _RULES:
            if not hints.isdisjoint(found):
                secret = _compiled(pattern)
                kept = r"\1" if secret.groups else ""
                looked_at = secret.sub(kept + REDACTED, looked_at)
    return clip(looked_at, limit)


@lru_cache(1_000)
def _redacted_key(key: str) -> str:
    """Redacts a short key; cached, because calls repeat the same few keys."""
    return redacted_text(key, KEY_CHARACTERS)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compiles a pattern on first use, since most sessions need few of them."""
    return re.compile(pattern, re.IGNORECASE)


class _Budget:
    """Copies values until the character budget is spent."""

    def __init__(self, budget: int, names: Collection[str]) -> None:
        self._left = budget
        self._names = names

    def mapping(self, value: Mapping[str, Any], levels: int) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for number, (key, inner) in enumerate(value.items()):
            if number == ITEMS or self._left <= 0:
                kept[CUT] = CUT
                break
            given = key if isinstance(key, str) else type(key).__name__
            is_short = len(given) <= KEY_CHARACTERS
            name = _redacted_key(given) if is_short else redacted_text(given, KEY_CHARACTERS)
            self._left -= len(name) + WORTH
            is_name = isinstance(inner, str) and inner in self._names
            is_secret = _is_secret(given, inner) and not is_name
            kept[name] = REDACTED if is_secret else self._value(inner, levels - 1)
        return kept

    def _value(self, value: object, levels: int) -> Any:  # noqa: ANN401  # any JSON value
        if isinstance(value, str):
            text = redacted_text(value, max(self._left, WORTH))
            self._left -= len(text)
            return text
        if value is None or isinstance(value, int | float):
            return _json_number(value)
        spent = levels <= 0 or self._left <= 0
        if isinstance(value, Mapping):
            return CUT if spent else self.mapping(value, levels)
        if isinstance(value, list | tuple):
            return CUT if spent else self._list(value, levels)
        return type(value).__name__

    def _list(self, value: list[Any] | tuple[Any, ...], levels: int) -> list[Any]:
        kept: list[Any] = []
        for number, inner in enumerate(value):
            if number == ITEMS or self._left <= 0:
                kept.append(CUT)
                break
            self._left -= WORTH
            kept.append(self._value(inner, levels - 1))
        return kept


def _json_number(value: float | None) -> float | str | None:
    """Returns a number in JSON form, or a text describing it."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        return f"a number of {value.bit_length()} bits"
    return value


def _is_secret(key: str, value: object) -> bool:
    """Returns whether a key names a secret; empty values and booleans are never secret."""
    if value is None or isinstance(value, bool) or value == "":
        return False
    return _SECRET_KEY.search(_NO_LETTER.sub("", key[:256]).lower()) is not None
