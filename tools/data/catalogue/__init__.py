"""What a release of Data-Juicer offers, known without it."""
