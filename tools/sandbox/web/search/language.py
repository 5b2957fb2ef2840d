"""The language of search results, in each search engine's terms."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

from tools.core.errors import InvalidArgumentsError

_FORM = re.compile(r"([a-z]{2})(?:[-_]([a-z]{2}))?", re.IGNORECASE)

_REGIONS = (
    *("xa-ar", "in-bn", "ct-ca", "cz-cs", "dk-da", "gr-el", "us-en", "ee-et", "ir-fa"),
    *("ie-ga", "in-gu", "il-he", "in-hi", "jp-ja", "in-kn", "kr-ko", "in-ml", "in-mr"),
    *("my-ms", "no-nb", "in-pa", "si-sl", "rs-sr", "se-sv", "in-ta", "in-te", "ua-uk"),
    *("vn-vi", "cn-zh"),
)
"""DuckDuckGo regions of languages whose main country has another code."""

_HOMES = {region[3:]: region[:2] for region in _REGIONS}

_BRAVE_NAMES = {
    "en-gb": "en-gb",
    "ja": "jp",
    "no": "nb",
    "pt": "pt-pt",
    "pt-br": "pt-br",
    "zh": "zh-hans",
    "zh-hk": "zh-hant",
    "zh-tw": "zh-hant",
}
_BRAVE_LANGUAGES = {
    *("ar", "bg", "bn", "ca", "cs", "da", "de", "el", "en", "es", "et", "eu", "fi", "fr"),
    *("gl", "gu", "he", "hi", "hr", "hu", "is", "it", "ja", "kn", "ko", "lt", "lv", "ml"),
    *("mr", "ms", "nb", "nl", "no", "pa", "pl", "pt", "ro", "ru", "sk", "sl", "sr", "sv"),
    *("ta", "te", "th", "tr", "uk", "vi", "zh"),
}
_BRAVE_COUNTRIES = {
    *("ar", "at", "au", "be", "br", "ca", "ch", "cl", "cn", "de", "dk", "es", "fi", "fr"),
    *("gb", "gr", "hk", "id", "in", "it", "jp", "kr", "mx", "my", "nl", "no", "nz", "ph"),
    *("pl", "pt", "ru", "sa", "se", "tr", "tw", "us", "za"),
}
"""Codes in the Brave Search API's documentation ("Country codes", "Language codes")."""


@dataclass(frozen=True, slots=True)
class Language:
    """A language, with an optional country."""

    code: str  # ISO 639-1, in lower case
    country: str = ""  # ISO 3166-1, in lower case; empty for any

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parses `de` or `de-AT`, in any case."""
        form = _FORM.fullmatch(text)
        if form is None:
            raise InvalidArgumentsError(
                f"lang: {text!r} is not a language.",
                next_actions=["Give two letters, or two with a country: en, de, pt-BR."],
            )
        return cls(form[1].lower(), (form[2] or "").lower())

    @property
    def region(self) -> str:
        """The form of ddgs: country and language."""
        country = self.country or _HOMES.get(self.code, self.code)
        return f"{'uk' if country == 'gb' else country}-{self.code}"

    @property
    def tag(self) -> str:
        """The form of SearXNG: language, and country in capitals."""
        return f"{self.code}-{self.country.upper()}" if self.country else self.code

    def for_brave(self) -> dict[str, str]:
        """Returns the parameters for the Brave Search API."""
        if self.code not in _BRAVE_LANGUAGES:
            raise InvalidArgumentsError(
                f"lang: Brave does not know {self.code!r}.",
                suggestions=sorted(_BRAVE_LANGUAGES),
                next_actions=["Give one that it knows, or leave lang out."],
            )
        whole = f"{self.code}-{self.country}"
        name = _BRAVE_NAMES.get(whole) or _BRAVE_NAMES.get(self.code, self.code)
        if self.country not in _BRAVE_COUNTRIES:
            return {"search_lang": name}
        return {"search_lang": name, "country": self.country.upper()}
