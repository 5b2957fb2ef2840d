"""Resources and prompts of functions, content blocks, and who hears of changes."""
