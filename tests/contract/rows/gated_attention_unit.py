"""Rows of `GatedAttentionUnit`."""

import numpy as np

from keras_gating import layers
from tests.contract import case as effects
from tests.contract.case import Argument
from tests.contract.case import Case
from tests.contract.case import Option
from tests.contract.case import Tensor
from tests.contract.rows.gated_attention import dense

INITIAL, LOSSES = effects.INITIAL_OUTPUTS, effects.LOSSES
STEP, TRAINING = effects.WEIGHTS_AFTER_STEP, effects.TRAINING_OUTPUTS

QUERY_AND_KEY = ("query_key_scale", "query_key_offset")
WEIGHTS = (*QUERY_AND_KEY, *dense("hidden", "shared", "output"))

ARGUMENTS = {
    "expansion_factor": Argument(1.5),
    "key_dim": Argument(6),
    "attention_activation": Argument("softmax"),
    "chunk_size": Argument(2),
    "divisor": Argument("length", call={"use_causal_mask": True}),
    "position": Argument("t5"),
    "norm_first": Argument(True),
    "normalization_epsilon": Argument(0.1, companions={"norm_first": True}),
    "dropout": Argument(0.5, TRAINING, {"seed": 4}),
    "activation": Argument("tanh"),
    # The result does not depend on it.
    "block_size": Argument(3, effects.RAISES, {"chunk_size": 2}),
    "use_bias": Argument(False),
    "kernel_initializer": Argument("ones", INITIAL),
    "bias_initializer": Argument("ones", INITIAL),
    "kernel_regularizer": Argument("l2", LOSSES),
    "bias_regularizer": Argument("l2", LOSSES),
    "kernel_constraint": Argument("non_neg", STEP),
    "bias_constraint": Argument("non_neg", STEP),
    "seed": Argument(5, TRAINING, {"seed": 4, "dropout": 0.5}),
}


def with_cache(index, **arguments):
    """Call arguments of five tokens at `index` of an empty cache."""
    return lambda layer: {
        "cache": layer.init_cache(2, 17),
        "cache_update_index": index,
        **arguments,
    }


def gated_attention_unit_case(id, kwargs, weights=WEIGHTS, **fields):
    return Case(
        **{
            "id": id,
            "layer": layers.GatedAttentionUnit,
            "registered_name": "keras_gating>GatedAttentionUnit",
            "kwargs": {"key_dim": 4, **kwargs},
            "inputs": {"inputs": Tensor((2, 5, 7))},
            "lengths": (5,),
            "weights": weights,
            "masked": ("inputs",),
            "padded": True,
            **fields,
        }
    )


def gated_attention_unit_cases():
    # Squared ReLU starts flat: its first gradients are lost in the rounding of
    # a step of plain gradient descent.
    yield gated_attention_unit_case(
        "gated_attention_unit",
        {"attention_activation": "laplace"},
        options=(
            Option("mask_btt", {"attention_mask": Tensor((2, 5, 5), "bool")}),
            Option(
                "mask_b1t_causal",
                {
                    "attention_mask": Tensor((2, 1, 5), "bool"),
                    "use_causal_mask": True,
                },
            ),
            Option("training", {"training": False}),
        ),
        arguments=ARGUMENTS,
    )
    yield gated_attention_unit_case(
        "gated_attention_unit_pre_norm",
        {
            "norm_first": True,
            "position": "t5",
            "attention_activation": "laplace",
        },
        (
            *QUERY_AND_KEY,
            "position_bias",
            "normalization/gamma",
            "normalization/beta",
            *dense("hidden", "shared", "output"),
        ),
        options=(
            Option("cache", with_cache(3)),
            Option(
                "cache_tensor_index",
                with_cache(
                    np.array(3, "int32"),
                    attention_mask=Tensor((2, 1, 5, 17), "bool"),
                    use_causal_mask=True,
                    donate_cache=True,
                ),
            ),
        ),
        cache=True,
    )
    yield gated_attention_unit_case(
        "gated_attention_unit_chunked",
        {"chunk_size": 3, "position": "rope"},
        options=(
            Option("causal", {"use_causal_mask": True}),
            Option("mask_b1t", {"attention_mask": Tensor((2, 1, 5), "bool")}),
            Option("cache", with_cache(0, use_causal_mask=True)),
            Option(
                "cache_tensor_index",
                with_cache(
                    np.array(0, "int32"),
                    use_causal_mask=True,
                    donate_cache=True,
                ),
            ),
        ),
    )
