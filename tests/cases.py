"""One row for every layer: the generic tests in `contract` run over them.

A new layer joins by a file in `contract/rows` and its line here.
"""

from tests.contract.rows.attention_block import attention_block_cases
from tests.contract.rows.channel import channel_cases
from tests.contract.rows.curvature_gate import curvature_gate_cases
from tests.contract.rows.feed_forward import feed_forward_cases
from tests.contract.rows.gate import gate_cases
from tests.contract.rows.gated_attention import gated_attention_cases
from tests.contract.rows.gated_attention_unit import gated_attention_unit_cases
from tests.contract.rows.glu import glu_cases

CASES = [
    *gate_cases(),
    *curvature_gate_cases(),
    *gated_attention_cases(),
    *attention_block_cases(),
    *gated_attention_unit_cases(),
    *glu_cases(),
    *feed_forward_cases(),
    *channel_cases(),
]

# The first of every class, for tests that take seconds.
ONE_EACH = list({case.layer: case for case in reversed(CASES)}.values())[::-1]
