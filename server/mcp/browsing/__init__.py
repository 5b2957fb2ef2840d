"""Resources and prompts of functions, content blocks, and notifications of changes."""
