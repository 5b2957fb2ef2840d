"""Tools of agents that plan, write programs over tools, delegate and learn."""
