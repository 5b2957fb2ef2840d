"""Follow-ups: which queries lean on earlier ones, and what they become."""
