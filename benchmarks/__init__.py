"""What the product costs and how well it finds, measured: `python -m benchmarks.NAME`."""
