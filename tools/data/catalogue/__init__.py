"""The operators and options of a release of Data-Juicer, which need not be installed."""
