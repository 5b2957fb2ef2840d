"""Settings of a repository that make git run programs: all not known to be harmless."""

from __future__ import annotations

import re

_HARMLESS: dict[str, frozenset[str]] = {
    "branch": frozenset(
        {
            *("description", "merge", "pushremote", "rebase", "remote"),
            *("gh-merge-base", "github-pr-owner-number", "vscode-merge-base"),  # other tools' notes
        }
    ),
    "core": frozenset(
        {
            *("abbrev", "autocrlf", "bare", "compression", "eol", "filemode", "ignorecase"),
            *("logallrefupdates", "precomposeunicode", "quotepath", "repositoryformatversion"),
            *("safecrlf", "sharedrepository", "symlinks"),
        }
    ),
    "extensions": frozenset({"objectformat", "refstorage", "worktreeconfig"}),
    "init": frozenset({"defaultbranch"}),
    "pull": frozenset({"ff", "rebase"}),
    "push": frozenset({"autosetupremote", "default"}),
    "remote": frozenset({"fetch", "gh-resolved", "prune", "pushurl", "tagopt", "url"}),
    "submodule": frozenset({"active", "url"}),
    "user": frozenset({"email", "name"}),
}
"""Settings, by section, that name no program or further settings file (git-config(1))."""

_ADDRESSES = frozenset({"pushremote", "pushurl", "remote", "url"})

_SECTION = re.compile(rb'\[([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\\n\0]|\\["\\])*)")?\]')
_SETTING = re.compile(rb"([A-Za-z][A-Za-z0-9-]*)(?:[ \t]*=[ \t]*([^\\\n\r\0]*))?")

Setting = tuple[str, str, str, str]  # section, subsection, name and value


def is_harmless(new: bytes, old: bytes | None) -> bool:
    """Returns whether a change of a repository's settings makes git run nothing new."""
    if new == old:
        return True
    after = _settings(new)
    before = _settings(old or b"")
    if after is None or before is None:
        return False
    return [each for each in after if not _runs_nothing(each)] == [
        each for each in before if not _runs_nothing(each)
    ]


def is_harmless_setting(key: str, value: str = "") -> bool:
    """Returns whether a setting that git is asked to write makes it run nothing.

    The key has section, optional subsection and name; an empty value removes the setting.
    """
    section, _, rest = key.partition(".")
    subsection, _, name = rest.rpartition(".")
    return _runs_nothing((section.lower(), subsection, name.lower(), value))


def _settings(text: bytes) -> list[Setting] | None:
    """Parses the settings in order; None if a line is not in the simplest form."""
    found: list[Setting] = []
    section = subsection = ""
    for line in text.split(b"\n"):
        stripped = line.strip(b" \t")
        if not stripped or stripped[:1] in {b"#", b";"}:
            continue
        if header := _SECTION.fullmatch(stripped):
            section = header[1].decode().lower()
            subsection = (header[2] or b"").decode(errors="surrogateescape")
        elif setting := _SETTING.fullmatch(stripped):
            value = (setting[2] or b"").decode(errors="surrogateescape")
            found.append((section, subsection, setting[1].decode().lower(), value))
        else:
            return None
    return found


def _runs_nothing(setting: Setting) -> bool:
    section, _subsection, name, value = setting
    if name not in _HARMLESS.get(section, ()):
        return False
    # `ext::program` and the like are run, and so are hosts that begin with a dash.
    bare = value.replace('"', "").lstrip()
    return name not in _ADDRESSES or not ("::" in bare or bare.startswith("-"))
