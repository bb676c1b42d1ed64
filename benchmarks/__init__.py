"""Benchmarks: cases as data, one runner, JSONL out."""
