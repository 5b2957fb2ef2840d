"""Resources and prompts of other servers, and their changes."""
