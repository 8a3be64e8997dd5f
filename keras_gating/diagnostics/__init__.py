"""Seeing what gates and attention do."""

from keras_gating.diagnostics.cost import cost_table

__all__ = ["cost_table"]
