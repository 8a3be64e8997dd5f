"""Rows of `GatedAttention`."""

import numpy as np

from keras_gating import layers
from tests.contract import case as effects
from tests.contract.case import Argument
from tests.contract.case import Case
from tests.contract.case import Option
from tests.contract.case import Same
from tests.contract.case import Tensor

KEY_BIAS = {"key/bias": "it shifts all logits of a row alike"}

PROJECTIONS = ("query", "key", "value", "attention_output")


def dense(*names):
    """Paths of a kernel and a bias each."""
    return tuple(
        f"{n}/{weight}" for n in names for weight in ("kernel", "bias")
    )


def attention_case(id, kwargs, weights, **fields):
    """Attention of 5 queries of width 7 to 4 keys of width 9."""
    defaults = {
        "layer": layers.GatedAttention,
        "registered_name": "keras_gating>GatedAttention",
        "inputs": {"query": Tensor((2, 5, 7)), "value": Tensor((2, 4, 9))},
        "lengths": (5, 4),
        "options": (
            Option("key", {"key": Tensor((2, 4, 11))}),
            Option("gate_input", {"gate_input": Tensor((2, 5, 13))}),
            Option("query_mask", {"query_mask": Tensor((2, 5), "bool")}),
            Option("value_mask", {"value_mask": Tensor((2, 4), "bool")}),
            Option("key_mask", {"key_mask": Tensor((2, 4), "bool")}),
            Option("mask_ts", {"attention_mask": Tensor((5, 4), "bool")}),
            Option("mask_bts", {"attention_mask": Tensor((2, 5, 4), "bool")}),
            Option(
                "mask_b1ts_scores",
                {
                    "attention_mask": Tensor((2, 1, 5, 4), "bool"),
                    "return_attention_scores": True,
                },
            ),
            Option("scores", {"return_attention_scores": True}),
            Option("causal", {"use_causal_mask": True}),
            Option("training", {"training": False}),
        ),
        "private": ("output_shape", "activity_regularizer"),
        "masked": ("query", "value"),
        "attention_mask": True,
        "padded": True,
    }
    return Case(id=id, kwargs=kwargs, weights=weights, **{**defaults, **fields})


def gated_attention_cases():
    small = {"num_heads": 3, "key_dim": 8}
    main = attention_case(
        "attention",
        small,
        dense("query", "key", "gate/projection", "value", "attention_output"),
        arguments=GATED_ATTENTION_ARGUMENTS,
        idle_weights=KEY_BIAS,
    )
    yield main
    few = [
        option
        for option in main.options
        if option.id in ("key", "gate_input", "mask_b1ts_scores")
    ]
    yield attention_case(
        "attention_self",
        {**small, "rope_max_wavelength": 100.0, "gate_granularity": "shared"},
        main.weights,
        inputs={"query": Tensor((2, 5, 7)), "value": Same("query")},
        lengths=(5,),
        options=SELF_ATTENTION_OPTIONS,
        masked=("query",),
        cache=True,
        causal=True,
    )
    yield attention_case(
        "attention_grouped_sites",
        {
            "num_heads": 6,
            "num_key_value_heads": 3,
            "key_dim": 8,
            "value_dim": 10,
            "gate_site": ("output", "value", "key"),
            "gate_granularity": "headwise",
        },
        (
            *main.weights,
            *dense("value_gate/projection", "key_gate/projection"),
        ),
        options=few,
    )
    yield attention_case(
        "attention_split",
        {**small, "value_dim": 12, "gate_source": "split"},
        dense(*PROJECTIONS),
        options=few[:1],
        idle_weights=KEY_BIAS,
    )
    yield attention_case(
        "attention_norms_query_context",
        {
            **small,
            "gate_source": "query_context",
            "context_normalization": "rms",
            "query_key_normalization": "rms",
        },
        (
            *main.weights,
            "query_norm/scale",
            "key_norm/scale",
            "context_norm/scale",
        ),
        options=few,
    )
    yield attention_case(
        "attention_projection_gate",
        {
            **small,
            "gate_site": ("projection", "query"),
            "gate_rank": 6,
            "output_shape": (10, 11),
        },
        (
            *dense(*PROJECTIONS),
            *("query_gate/reduction/kernel", *dense("query_gate/projection")),
            "projection_gate/reduction/kernel",
            *dense("projection_gate/projection"),
        ),
        options=few,
        idle_weights=KEY_BIAS,
    )
    yield attention_case(
        "attention_constant_gate",
        {
            **small,
            "gate_source": "constant",
            "context_normalization": "layer",
        },
        (
            *dense("query", "key"),
            "gate/bias",
            *dense("value", "attention_output"),
            "context_norm/gamma",
        ),
        options=few[:1],
        idle_weights=KEY_BIAS,
    )
    yield attention_case(
        "attention_rank_4",
        {**small, "attention_axes": 2},
        main.weights,
        inputs={
            "query": Tensor((2, 13, 5, 7)),
            "value": Tensor((2, 13, 4, 9)),
        },
        lengths=(5, 4),
        options=(
            Option("key", {"key": Tensor((2, 13, 4, 11))}),
            Option("scores", {"return_attention_scores": True}),
            Option("mask_ts", {"attention_mask": Tensor((5, 4), "bool")}),
            Option(
                "mask_bfts", {"attention_mask": Tensor((2, 13, 5, 4), "bool")}
            ),
            Option("gate_input", {"gate_input": Tensor((2, 13, 5, 14))}),
        ),
        arguments={
            "attention_axes": Argument(2, companions={"attention_axes": None})
        },
        masked=(),
        padded=False,
        idle_weights=KEY_BIAS,
    )


SELF_ATTENTION_OPTIONS = (
    Option(
        "cache",
        lambda layer: {
            "cache": layer.init_cache(2, 17),
            "cache_update_index": 3,
        },
    ),
    Option(
        "cache_tensor_index_scores",
        lambda layer: {
            "cache": layer.init_cache(2, 17),
            "cache_update_index": np.array(3, "int32"),
            "attention_mask": Tensor((2, 1, 5, 17), "bool"),
            "return_attention_scores": True,
            "use_causal_mask": True,
            "donate_cache": True,
        },
    ),
    Option("causal", {"use_causal_mask": True}),
    Option("scores", {"return_attention_scores": True}),
)

STEP, LOSSES = effects.WEIGHTS_AFTER_STEP, effects.LOSSES
INITIAL, TRAINING = effects.INITIAL_OUTPUTS, effects.TRAINING_OUTPUTS
NO_KEY_FOR_THE_FIRST = np.arange(5)[:, None] * np.ones((5, 4)) > 0

GATED_ATTENTION_ARGUMENTS = {
    "num_heads": Argument(4),
    "key_dim": Argument(4),
    "value_dim": Argument(10),
    "dropout": Argument(0.5, TRAINING, {"seed": 4}),
    "use_bias": Argument(False),
    "output_shape": Argument((12,)),
    "sliding_window": Argument(2),
    "flash_attention": Argument(True, effects.RAISES, {"dropout": 0.5}),
    "kernel_initializer": Argument("ones", INITIAL),
    "bias_initializer": Argument("ones", INITIAL),
    "kernel_regularizer": Argument("l2", LOSSES),
    "bias_regularizer": Argument("l2", LOSSES),
    "activity_regularizer": Argument("l2", LOSSES),
    "kernel_constraint": Argument("non_neg", STEP),
    "bias_constraint": Argument("non_neg", STEP),
    "use_gate": Argument(False),
    "seed": Argument(5, TRAINING, {"seed": 4, "dropout": 0.5}),
    "num_key_value_heads": Argument(1),
    "gate_site": Argument(("value", "projection")),
    "gate_granularity": Argument("headwise"),
    "gate_source": Argument("context"),
    "gate_activation": Argument("tanh"),
    "gate_scale": Argument(2.0),
    "gate_rank": Argument(3),
    "gate_initializer": Argument("ones", INITIAL),
    "gate_bias_initializer": Argument("ones", INITIAL),
    "gate_use_bias": Argument(False),
    "gate_dropout": Argument(0.5, TRAINING, {"seed": 4}),
    "context_normalization": Argument("rms"),
    "query_key_normalization": Argument("rms"),
    "normalization_epsilon": Argument(
        0.1, companions={"context_normalization": "rms"}
    ),
    "rope_max_wavelength": Argument(100.0),
    "rope_fraction": Argument(0.5, companions={"rope_max_wavelength": 100.0}),
    "masked_rows": Argument(
        "uniform", call={"attention_mask": NO_KEY_FOR_THE_FIRST}
    ),
}
