"""Which redirects a tool follows: those within the site that its call was about."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tools.core.context import RequestContext

if TYPE_CHECKING:
    from tools.sandbox.web.url import Url

__all__ = ["followed_by", "is_same_site"]


def followed_by(context: RequestContext) -> Callable[[Url, Url], bool]:
    """Which redirects a call follows: those within its site that no rule of the policy denies."""
    return lambda here, there: is_same_site(here, there) and context.may_reach(str(there))


def is_same_site(here: Url, there: Url) -> bool:
    """Whether a redirect leads to the same server, with or without `www.`, or to its HTTPS.

    The policy and whoever approved the call judged its URL alone: another site is another call.
    """
    if here.host.removeprefix("www.") != there.host.removeprefix("www."):
        return False
    upgraded = (here.scheme, here.port, there.scheme, there.port) == ("http", 80, "https", 443)
    return upgraded or (here.scheme, here.port) == (there.scheme, there.port)
