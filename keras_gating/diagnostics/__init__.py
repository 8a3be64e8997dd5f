"""Seeing what gates and attention do."""

from keras_gating.diagnostics.statistics import gate_statistics

__all__ = ["gate_statistics"]
