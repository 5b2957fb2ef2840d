"""Resources and prompts of other servers, and what changes of them."""
