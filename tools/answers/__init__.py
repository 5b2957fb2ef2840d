"""Arguments and results shared by several tools."""
