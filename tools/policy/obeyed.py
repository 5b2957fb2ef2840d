"""Writes to files that other programs obey: a person is asked about each, or a rule names them."""

from __future__ import annotations

from collections.abc import Collection

from tools.policy.calls import Call, writes_files
from tools.policy.forms import PathForm
from tools.policy.matching import Fitted
from tools.policy.verdict import Decision, Verdict
from tools.sandbox.files.protected_names import OBEYED, Name, closed_names


def obeyed_names(call: Call) -> frozenset[Name]:
    """What of the path that a call writes other programs obey.

    Nothing where it is closed for good, or where the tool writes by another sandbox than ours.
    """
    if call.path is None or call.spec.source != "builtin" or not writes_files(call.spec):
        return frozenset()
    found = frozenset(closed_names(call.path.split("/")))
    return found if found <= OBEYED.keys() else frozenset()


def unless_denied(usual: Decision, names: Collection[Name]) -> Decision:
    """A question, which no profile answers and no remembered approval, where a write may be.

    Args:
        usual: What is said of writes to other files.
        names: What programs obey of the path.
    """
    if usual.verdict is Verdict.DENY:
        return usual
    name = min(names)
    path = "/".join(name)
    reason = f"{OBEYED[name]} what stands in {path}, and nothing confines that."
    return Decision(Verdict.ASK, f"obeyed:{path}", "protection", reason)


def names_them(rule: Fitted, names: Collection[Name]) -> bool:
    """Whether a rule has all the names in its path, written out."""
    if not isinstance(rule.form, PathForm):
        return False
    written = [part and part.literal for part in rule.form.pattern.components]
    return all(
        any(tuple(written[at : at + len(name)]) == name for at in range(len(written)))
        for name in names
    )
