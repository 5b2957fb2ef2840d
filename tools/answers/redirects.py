"""Redirects of requests that tools make for a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tools.core.context import RequestContext

if TYPE_CHECKING:
    from tools.sandbox.web.url import Url


def stays_within(context: RequestContext) -> Callable[[Url, Url], bool]:
    """Which redirects a call follows: those within its site that no rule of the policy denies.

    The policy and whoever approved the call judged its URL alone: another site is another call.
    """
    return lambda here, there: here.is_same_site(there) and context.may_reach(str(there))
