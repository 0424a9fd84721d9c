"""Simulated jobs with known truth: clocks and sync points, and whole jobs as text in the real formats."""
