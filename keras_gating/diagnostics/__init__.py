"""Seeing what gates and attention do."""

from keras_gating.diagnostics.attention_plot import plot_attention
from keras_gating.diagnostics.cost import cost_table
from keras_gating.diagnostics.cost_result import Cost
from keras_gating.diagnostics.cost_result import CostTable
from keras_gating.diagnostics.curvature_plot import plot_curvature
from keras_gating.diagnostics.gate_plot import plot_gates
from keras_gating.diagnostics.monitor import GateMonitor
from keras_gating.diagnostics.record import AttentionScores
from keras_gating.diagnostics.record import GateRecord
from keras_gating.diagnostics.record import GateValues
from keras_gating.diagnostics.recording import record_gates
from keras_gating.diagnostics.sinks import attention_sink
from keras_gating.diagnostics.statistics import GateStatistics
from keras_gating.diagnostics.statistics import gate_statistics
from keras_gating.diagnostics.variables import gate_variables

__all__ = [
    "AttentionScores",
    "Cost",
    "CostTable",
    "GateMonitor",
    "GateRecord",
    "GateStatistics",
    "GateValues",
    "attention_sink",
    "cost_table",
    "gate_statistics",
    "gate_variables",
    "plot_attention",
    "plot_curvature",
    "plot_gates",
    "record_gates",
]
