"""Removes from texts what looks like a secret; hooks load it without the rest of the package."""

from __future__ import annotations

import re
from functools import cache

from storage.index.bounded import clip

REDACTED = "[redacted]"  # the replacement of a secret

_NAMES = ("passw", "passcode", "passphrase", "pwd", "secret", "token", "key", "credential")
_WORD = (  # a word containing one of these, scanned once
    r"(?=[\w-]*(?:passw(?:or)?d|passcode|passphrase|pwd|secret|token|api[-_]?key"
    r"|access[-_]?key|private[-_]?key|credential))(?>[\w-]+)"
)
_NAMED = rf"(?<![\w-]){_WORD}"
_VALUE = r"(?:\"[^\"\r\n]*\"?|'[^'\r\n]*'?|[^\s\"';|&][^\s;|&]*)"
# A character of a token, or a line break in it: the rest has a digit or is long, as no word is.
_CHARACTER = r"(?:[\w-]|\r?\n[ \t]{0,20}(?=[\w-]{0,200}\d|[\w-]{20}))"
_OPENINGS = ("sk-", "pk-", "rk-", "_", "glpat-", "xox", "akia", "aiza", "eyj")

RULES = tuple(
    (frozenset(hints), pattern)
    for hints, pattern in (
        (  # first, because another rule would take the first line of a token that is broken
            _OPENINGS,
            (
                rf"\b(?:[spr]k[-_]{_CHARACTER}{{16,}}|gh[a-z]_{_CHARACTER}{{20,}}"
                rf"|github_pat_{_CHARACTER}{{20,}}|glpat-{_CHARACTER}{{16,}}|xox[a-z]-{_CHARACTER}{{10,}}"
                rf"|akia{_CHARACTER}{{12,}}|aiza{_CHARACTER}{{30,}}"
                rf"|eyj{_CHARACTER}{{8,2000}}\.{_CHARACTER}{{8,2000}}\.{_CHARACTER}*)"
            ),  # the last is a JSON web token, RFC 7519
        ),
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
            (
                r"-----BEGIN [A-Z ]*PRIVATE KEY-----"
                r"(?:(?:\s|\\[rn]){0,4}(?:Proc-Type|DEK-Info):[^\r\n\\]*)*"  # if it is encrypted
                r"[^-]*(?:-----END [A-Z ]*PRIVATE KEY-----)?"
            ),
        ),
    )
)
"""Patterns of secrets: cheap hints to search first, then the pattern; its first group is kept."""

HINTS = tuple(frozenset[str]().union(*(hints for hints, _ in RULES)))


def redacted_text(text: str, limit: int) -> str:
    """Returns the beginning of a text for recording, without anything that looks like a secret."""
    looked_at = text[: 2 * limit]
    if len(looked_at) < len(text):  # drop the last word, which may be half a secret
        looked_at = looked_at.rpartition(" ")[0] or looked_at
    lowered = looked_at.lower()
    if found := [hint for hint in HINTS if hint in lowered]:
        for hints, pattern in RULES:
            if not hints.isdisjoint(found):
                secret = _compiled(pattern)
                kept = r"\1" if secret.groups else ""
                looked_at = secret.sub(kept + REDACTED, looked_at)
    return clip(looked_at, limit)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compiles a pattern on first use, since most sessions need few of them."""
    return re.compile(pattern, re.IGNORECASE)
