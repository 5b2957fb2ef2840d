"""Reads the source of a release of Data-Juicer, as it is written; none of it is run."""
