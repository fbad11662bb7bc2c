"""Wengert beside its peers: `python -m benchmarks` runs every workload on every engine that is installed."""
