"""Characters of which nothing is seen, though Unicode counts them among those that are shown."""

from __future__ import annotations

__all__ = ["EMOJI_SELECTOR", "INVISIBLE"]

INVISIBLE = (
    "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u3164\ufe00-\ufe0e\uffa0\ufff0-\ufff8"
    "\U000e0000-\U000e0fff"
)
"""What stands between the brackets of a regular expression: Default_Ignorable_Code_Point of
Unicode's DerivedCoreProperties.txt, but for category Cf and the `EMOJI_SELECTOR`."""

EMOJI_SELECTOR = "\ufe0f"
"""Ignorable too, and a part of emoji."""
