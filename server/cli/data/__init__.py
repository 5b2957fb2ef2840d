"""Commands that bring data in, take it out, keep it safe and delete it."""
