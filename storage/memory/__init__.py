"""Memory in layers: recorded calls and messages, important facts, summaries, and knowledge."""
