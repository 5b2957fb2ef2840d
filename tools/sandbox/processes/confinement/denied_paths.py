"""Finds the paths that the policy denies to a program when it starts.

Each path is taken away by a mount. Rules that no mount can express are not enforced, and the user
is asked to accept that. Files created under forbidden names are moved away when the program has
ended.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tools.core.errors import PermissionDeniedError
from tools.core.spec import Effect
from tools.policy.matching import DeniedPlace
from tools.policy.paths import PathPattern
from tools.sandbox.files.openat import OPEN_DIRECTORY, identity
from tools.sandbox.processes.confinement.plan import (
    Plan,
    directories_between,
    is_beneath,
    outermost,
)
from tools.sandbox.processes.models import Level
from tools.sandbox.processes.protection.quarantine import Quarantine
from tools.sandbox.processes.protection.scan import is_settled, open_folder

MOST_FOLDERS = 100_000  # limit on the directories searched for paths in rules
MOST_PATHS = 300  # limit on the paths taken away from a program: each is a mount

_Reached = tuple[frozenset[int], ...]
"""The matching state of each rule's pattern, as in `PathPattern.descend`."""

_At = tuple[str, _Reached]  # A directory, and the state of the patterns there


@dataclass(frozen=True, slots=True)
class DeniedPaths:
    """The paths denied to a program, absolute and without links, each with its rule."""

    hidden: dict[str, str] = field(default_factory=dict)
    read_only: dict[str, str] = field(default_factory=dict)
    # All existing paths it may not write, however that is enforced.
    written: dict[str, str] = field(default_factory=dict)
    # Rules that are not enforced, with reasons.
    unheld: dict[str, str] = field(default_factory=dict)
    places: tuple[DeniedPlace, ...] = ()  # the places of the rules

    def check(self, accepted: Collection[str] = ()) -> None:
        """Raises PermissionDeniedError if an unenforced rule was not accepted by the user."""
        for rule, why in self.unheld.items():
            if rule not in accepted:
                raise PermissionDeniedError(
                    f"No program was run: the rule {rule!r} (settings) is not enforced, as {why}.",
                    next_actions=["Use the file tools, or ask the user to change the rule."],
                )

    def taken_from(self, plan: Plan) -> Plan:
        """Removes the denied paths from a plan."""
        closed = self.hidden | self.read_only

        def is_left(path: str, tops: Collection[str]) -> bool:
            return not any(is_beneath(path, each) for each in tops)

        for path, rule in self.hidden.items():
            if is_beneath(plan.cwd, path):
                raise PermissionDeniedError(
                    f"No program was run in {plan.cwd}: the rule {rule!r} (settings) denies it.",
                    next_actions=["Run it in another directory."],
                )
        own = [path for path in closed if is_left(path, plan.protected.hidden)]
        tops = (plan.root, *(each.path for each in plan.outside if each.writes))
        ways = {each for path in own for top in tops for each in directories_between(top, path)}
        return replace(
            plan,
            pinned=tuple(each for each in (*plan.pinned, *ways) if is_left(each, closed)),
            write_protected=(
                *plan.write_protected,
                *(each for each in own if each in self.read_only),
            ),
            hidden=tuple(each for each in own if each in self.hidden),
        )


class DeniedPathFinder:
    """Finds the denied paths; re-reads only directories that have changed."""

    def __init__(
        self,
        root: str,
        visible: Sequence[str],
        places: Callable[[], tuple[DeniedPlace, ...]],
        *,
        is_own: bool,  # programs run in this root; otherwise only unconfined ones reach it
    ) -> None:
        self.places = places
        self.is_own = is_own
        self._root = root
        self._visible = visible
        self._lock = threading.Lock()
        self._last: tuple[DeniedPlace, ...] = ()
        self._known: dict[_At, _Folder] = {}

    def find(self, level: Level) -> DeniedPaths:
        """Finds existing paths, and what a level can do about each; blocks while searching."""
        places, is_free = self.places(), level is Level.NONE
        if not places or not (self.is_own or is_free):
            return DeniedPaths()
        walk = self._walk(places, ("/",) if is_free else self._visible)
        unheld = {places[each].rule: _TOO_MANY for each in walk.given_up}

        def having(effect: Effect) -> dict[str, str]:
            found = {}
            for path, numbers in walk.found.items():
                rules = [places[each].rule for each in numbers if effect in places[each].effects]
                if rules and effect is Effect.READ:
                    found[walk.links.get(path, path)] = rules[0]  # no effect if it leads out
                elif rules and (is_free or is_beneath(path, self._root)):
                    found[path] = rules[0]
                    link = path if path in walk.links else walk.through.get(path)
                    if link is not None:
                        unheld[rules[0]] = f"{link} is a link, which programs can replace"
            return found

        read, written = having(Effect.READ), having(Effect.WRITE)
        hidden = {path: read[path] for path in outermost(read.keys() - {""})}
        read_only = {
            path: written[path]
            for path in outermost(written)
            if not any(is_beneath(path, each) for each in hidden)
        }
        if level in {Level.NONE, Level.LANDLOCK}:
            why = "nothing confines programs here" if is_free else "Landlock hides nothing"
            for path, rule in (hidden | read_only).items():
                unheld[rule] = f"{why}, so that they reach {path}"
            return DeniedPaths(written=written, unheld=unheld, places=places)
        for rule in [*hidden.values(), *read_only.values()][MOST_PATHS:]:
            unheld[rule] = f"there are more than {MOST_PATHS} paths to take away"
        return DeniedPaths(hidden, read_only, written, unheld, places)

    def undo(
        self, before: DeniedPaths, accepted: Collection[str], quarantine: Path
    ) -> Iterator[str]:
        """Moves away files created under forbidden names; yields notes.

        Rules that were added meanwhile do not count: their files may have existed before.
        """
        now = self.places()
        places = tuple(each for each in before.places if each in now)
        held = {
            at: each.rule
            for at, each in enumerate(places)
            if Effect.WRITE in each.effects and each.rule not in accepted
        }
        if not held:
            return
        walk = self._walk(places, ())
        new = {
            path: held[number]
            for path, numbers in walk.found.items()
            for number in numbers
            if number in held and not any(is_beneath(path, each) for each in before.written)
        }
        if not new:  # the root of the rules may be gone
            return
        to, root = Quarantine(quarantine), os.open(self._root, OPEN_DIRECTORY)
        try:
            for path in outermost(new):
                yield _take(to, root, os.path.relpath(path, self._root), new[path])
        finally:
            os.close(root)
        for each in walk.given_up & held.keys():
            yield f"not searched for what the rule {held[each]!r} denies: {_TOO_MANY}"

    def _walk(self, places: tuple[DeniedPlace, ...], tops: Sequence[str]) -> _Walk:
        with self._lock:
            if places != self._last or len(self._known) > 2 * MOST_FOLDERS:
                self._last, self._known = places, {}
            walk = _Walk(places, self._root, tops, self._known)
            walk.run()
            self._known |= walk.seen
            return walk


_TOO_MANY = f"there are more than {MOST_FOLDERS} directories to search"


@dataclass(frozen=True, slots=True)
class _Folder:
    """A directory as read with certain pattern states."""

    signature: tuple[int, ...]  # changes with the directory; empty if that is not certain
    # The relevant names, each with whether it is a link and the pattern states.
    entries: tuple[tuple[str, bool, _Reached], ...]


class _Walk:
    """One search. Follows links if there are visible directories other than the root."""

    def __init__(
        self,
        places: Sequence[DeniedPlace],
        root: str,
        tops: Sequence[str],
        known: Mapping[_At, _Folder],
    ) -> None:
        self.found: dict[str, list[int]] = {}  # the outermost denied paths, each with its places
        self.links: dict[str, str] = {}  # links among them, with their targets
        self.given_up: set[int] = set()
        self.through: dict[str, str] = {}  # paths reached through a link, each with that link
        self.seen: dict[_At, _Folder] = {}
        self._patterns = [each.pattern for each in places]
        self._root = root
        self._tops = (root, *tops)
        self._known = known
        self._pending: list[tuple[str, _Reached, str]] = []
        self._follows = bool(tops)

    def run(self) -> None:
        """Searches the root, and then everything else that is visible."""
        self._come_to(self._root, tuple(map(_at_root, self._patterns)))
        self._search()
        if len(self._tops) > 1 and any(each.is_absolute for each in self._patterns):
            self._come_to(
                "/",
                tuple(each.begin() if each.is_absolute else frozenset() for each in self._patterns),
            )
            self._search()

    def _search(self) -> None:
        while self._pending:
            path, reached, link = self._pending.pop()
            if (path, reached) in self.seen:
                continue
            if len(self.seen) >= MOST_FOLDERS:
                self.given_up.update(at for at, each in enumerate(reached) if each)
                continue
            try:
                self.seen[path, reached] = folder = self._read(path, reached)
            except OSError as error:  # removed meanwhile, or closed to the server too
                if error.errno == errno.ENAMETOOLONG:
                    self.given_up.update(at for at, each in enumerate(reached) if each)
                continue
            for name, is_link, further in folder.entries:
                entry = f"{path.rstrip('/')}/{name}"
                if entry != self._root:  # searched first, with all patterns
                    self._come_to(entry, further, link, is_link=is_link)

    def _come_to(
        self, path: str, reached: _Reached, link: str = "", *, is_link: bool = False
    ) -> None:
        covered = [at for at, each in enumerate(self._patterns) if each.is_covering(reached[at])]
        is_seen = any(is_beneath(path, each) for each in self._tops)
        if covered and is_link:
            target = os.path.realpath(path)
            self.links[path] = (
                target if any(is_beneath(target, each) for each in self._tops) else ""
            )
        for each in [path] if is_seen else self._tops:
            if covered and is_beneath(each, path):
                self.found.setdefault(each, []).extend(covered)
                if link:
                    self.through[each] = link
        rest = tuple(frozenset() if at in covered else each for at, each in enumerate(reached))
        leads_on = is_seen or any(is_beneath(each, path) for each in self._tops)
        if any(rest) and is_link and is_seen:
            self._follow(path, rest, link)
        elif any(rest) and not is_link and leads_on:
            self._pending.append((path, rest, link))

    def _follow(self, path: str, reached: _Reached, link: str) -> None:
        """Searches a link's target, unless the walk reaches it with the same patterns."""
        if not self._follows or not os.path.isdir(path):  # noqa: PTH112  # thousands of links
            return
        target = os.path.realpath(path)
        if is_beneath(target, self._root):
            begun = (each.begin() for each in self._patterns)
            reached = tuple(
                frozenset() if each == start else each
                for each, start in zip(reached, begun, strict=True)
            )
        if any(reached) and any(is_beneath(target, each) for each in self._tops):
            self._pending.append((target, reached, link or path))

    def _read(self, path: str, reached: _Reached) -> _Folder:
        status = os.lstat(path)
        signature = (*identity(status), status.st_ctime_ns) if is_settled(status) else ()
        known = self._known.get((path, reached))
        if known is not None and signature == known.signature != ():
            return known
        found = []
        with os.scandir(path) as entries:
            for entry in entries:
                further = tuple(
                    each and pattern.descend(each, entry.name)
                    for each, pattern in zip(reached, self._patterns, strict=True)
                )
                is_leaf = not (entry.is_dir(follow_symlinks=False) or entry.is_symlink())
                if any(
                    each and (not is_leaf or pattern.is_covering(each))
                    for each, pattern in zip(further, self._patterns, strict=True)
                ):
                    found.append((entry.name, entry.is_symlink(), further))
        return _Folder(signature, tuple(found))


def _at_root(pattern: PathPattern) -> frozenset[int]:
    """Returns the state of a pattern at the root, over all spellings of the root."""
    found = set[int]()
    for names in pattern.roots:
        reached = pattern.begin()
        for name in names:
            if not pattern.is_covering(reached):
                reached = pattern.descend(reached, name)
        found |= reached
    return frozenset(found)


def _take(quarantine: Quarantine, root: int, path: str, rule: str) -> str:
    above, _, name = path.rpartition("/")
    try:
        with open_folder(root, above, rights=stat.S_IRWXU) as directory:
            place = quarantine.take(directory, name, path)
    except OSError as error:
        return f"could not be taken away, though the rule {rule!r} denies it: {path} ({error})"
    return f"taken away, as the rule {rule!r} denies it: {path} (moved to {place})"
