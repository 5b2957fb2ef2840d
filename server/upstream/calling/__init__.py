"""Calls of the tools of other servers, and what these ask in the middle of one."""
