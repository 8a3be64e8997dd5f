"""One row for every layer: the generic tests in `contract` run over them.

A new layer joins by a file in `contract/rows` and its line here.
"""

from tests.contract.rows.gate import gate_cases
from tests.contract.rows.gated_attention import gated_attention_cases

CASES = [
    *gate_cases(),
    *gated_attention_cases(),
]
