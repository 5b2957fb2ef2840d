"""The first files of an operator that somebody writes for Data-Juicer."""
