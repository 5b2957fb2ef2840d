"""Events, their summaries by day, week and month, and the search through them."""
