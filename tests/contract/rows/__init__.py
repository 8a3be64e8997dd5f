"""Rows of `tests/cases.py`, one file for each family of layers."""
