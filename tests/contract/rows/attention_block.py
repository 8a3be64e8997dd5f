"""Rows of `GatedAttentionBlock`."""

from keras_gating import layers
from tests.contract import case as effects
from tests.contract.case import Argument
from tests.contract.case import Case
from tests.contract.case import Option
from tests.contract.case import Tensor
from tests.contract.rows.gated_attention import KEY_BIAS
from tests.contract.rows.gated_attention import dense

ATTENTION = ("query", "key", "gate/projection", "value", "attention_output")
TRAINING = effects.TRAINING_OUTPUTS
WEIGHTS = (
    *dense(*(f"attention/{name}" for name in ATTENTION)),
    *("normalization/gamma", "normalization/beta"),
)


def attention_block_case(id, kwargs, weights=WEIGHTS, **fields):
    return Case(
        **{
            "id": id,
            "layer": layers.GatedAttentionBlock,
            "registered_name": "keras_gating>GatedAttentionBlock",
            "kwargs": {"num_heads": 3, "key_dim": 8, **kwargs},
            "inputs": {"inputs": Tensor((2, 5, 14))},
            "lengths": (5,),
            "weights": weights,
            "masked": ("inputs",),
            "padded": True,
            "idle_weights": {
                f"attention/{name}": reason for name, reason in KEY_BIAS.items()
            },
            **fields,
        }
    )


def attention_block_cases():
    yield attention_block_case(
        "attention_block",
        {},
        options=(
            Option("mask_btt", {"attention_mask": Tensor((2, 5, 5), "bool")}),
            Option(
                "mask_b1tt_causal",
                {
                    "attention_mask": Tensor((2, 1, 5, 5), "bool"),
                    "use_causal_mask": True,
                },
            ),
            Option("training", {"training": False}),
        ),
        arguments={
            "num_heads": Argument(4),
            "key_dim": Argument(4),
            "dropout": Argument(0.5, TRAINING, {"seed": 4}),
            "norm_first": Argument(True),
            "normalization_epsilon": Argument(0.1),
            # Some of those that go to `GatedAttention`.
            "seed": Argument(5, TRAINING, {"seed": 4, "dropout": 0.5}),
            "gate_source": Argument("query"),
            "gate_granularity": Argument("headwise"),
            "use_bias": Argument(False),
            "context_normalization": Argument("rms"),
        },
    )
    yield attention_block_case(
        "attention_block_pre_norm",
        {
            "norm_first": True,
            "context_normalization": "rms",
            "query_key_normalization": "rms",
            "gate_rank": 6,
        },
        (
            *dense(*(f"attention/{name}" for name in ATTENTION[:2])),
            "attention/gate/reduction/kernel",
            *dense(*(f"attention/{name}" for name in ATTENTION[2:])),
            *(
                f"attention/{name}_norm/scale"
                for name in ("query", "key", "context")
            ),
            *("normalization/gamma", "normalization/beta"),
        ),
        idle_weights={},
    )
