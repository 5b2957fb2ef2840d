"""The release of Data-Juicer that the catalogue describes and that recipes run on."""

VERSION = "1.6.1"
"""Of `py-data-juicer`; `assets/make_operators.py` reads the catalogue from it."""
