"""A call on its way: its turn, its time, and the calls that it makes."""
