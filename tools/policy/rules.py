"""Rules: `Selector` or `Selector(specifier)`, as people write them in the settings."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tools.core.spec import ToolSpec
from tools.policy.forms import FORMS, LineForm, PathForm
from tools.policy.selectors import Selector
from tools.policy.shell.open_ended import open_ended
from tools.policy.specifiers import Arguments

RULE = re.compile(r"([^()]+?)\s*(?:\((.*)\))?", re.DOTALL)
EXAMPLES = "Rules look like bash, bash(git status *), write_file(src/**) or scope:system."


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        text: As it is written.
        selector: Which tools it is about.
        specifier: Which calls of them, as it is written; empty for all.
        arguments: The same, where it compares arguments by name.
    """

    text: str
    selector: Selector
    specifier: str
    arguments: Arguments | None

    @classmethod
    def parse(cls, text: str) -> Rule:
        """Reads a rule.

        Raises:
            ValueError: If it cannot be read or can never match; it says why, with an example.
        """
        try:
            return cls._parse(text)
        except ValueError as error:
            raise ValueError(f"The rule {text!r} is wrong: {error}. {EXAMPLES}") from None

    @classmethod
    def _parse(cls, text: str) -> Rule:
        if not text.strip() or not text.isprintable():
            raise ValueError("it is empty or has characters that cannot be seen")
        found = RULE.fullmatch(text.strip())
        if found is None:
            raise ValueError("its parentheses do not match")
        selector = Selector.parse(found[1])
        specifier = found[2]
        if specifier is None and selector.place_effect is not None:
            raise ValueError(f"say which paths: '{found[1]}(secrets/**)', or 'effect:{found[1]}'")
        if specifier is None:
            return cls(text, selector, "", None)
        specifier = specifier.strip()
        if not specifier:
            raise ValueError("its parentheses are empty; leave them out to cover every call")
        is_line = LineForm.sets_variable(specifier)
        if selector.place_effect is None and Arguments.begin(specifier) and not is_line:
            return cls(text, selector, specifier, Arguments.parse(specifier))
        if selector.place_effect is not None:
            PathForm.parse(specifier)
        elif form := next((each for each in FORMS.values() if each.is_meant(specifier)), None):
            form.parse(specifier)
        return cls(text, selector, specifier, None)

    def names(self, parameter: str) -> bool:
        """Whether it says something of an argument by its name."""
        return self.arguments is not None and parameter in self.arguments.wanted

    def problem(self, spec: ToolSpec) -> str:
        """Why it can match no call of a tool that it names; empty where it can."""
        if not self.specifier:
            return ""
        if self.arguments is not None:
            unknown = self.arguments.unknown(spec.input_schema)
            return f"{spec.name} has no parameter {', '.join(unknown)}" if unknown else ""
        if spec.subject is None:
            return f"calls of {spec.name} are told apart by arguments only, as in (name=value)"
        try:
            FORMS[spec.subject.kind].parse(self.specifier)
        except ValueError as error:
            return str(error)
        return ""

    def excess(self, spec: ToolSpec) -> str:
        """What it stands for beyond what it seems to, of the calls of a tool; empty for nothing."""
        if not self.specifier or self.arguments is not None or self.problem(spec):
            return ""
        form = None if spec.subject is None else FORMS[spec.subject.kind].parse(self.specifier)
        return "; ".join(open_ended(form.pattern)) if isinstance(form, LineForm) else ""
