"""Decides which HTTP redirects a call follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tools.core.context import RequestContext

if TYPE_CHECKING:
    from tools.sandbox.web.url import Url


def stays_within(context: RequestContext) -> Callable[[Url, Url], bool]:
    """Allows redirects within the same site that the policy does not deny.

    The policy and the approval covered only the URL of the call: another site needs another call.
    """
    return lambda here, there: here.is_same_site(there) and context.may_reach(str(there))
