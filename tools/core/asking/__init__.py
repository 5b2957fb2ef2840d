"""What a function asks of its client, in the middle of its call."""
