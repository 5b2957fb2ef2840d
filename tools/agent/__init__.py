"""Tools for agents: plans, programs over tools, delegation and skills."""
