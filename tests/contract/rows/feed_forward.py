"""Rows of `FeedForward` and `GatedFeedForward`."""

from keras_gating import layers
from tests.contract import case as effects
from tests.contract.case import Argument
from tests.contract.case import Case
from tests.contract.case import Option
from tests.contract.case import Tensor

INITIAL, TRAINING = effects.INITIAL_OUTPUTS, effects.TRAINING_OUTPUTS
LOSSES, STEP = effects.LOSSES, effects.WEIGHTS_AFTER_STEP

ARGUMENTS = {
    "hidden_dim": Argument(14),
    "output_dim": Argument(9),
    "use_bias": Argument(True),
    "dropout": Argument(0.5, TRAINING, {"seed": 4}),
    "kernel_initializer": Argument("ones", INITIAL),
    "bias_initializer": Argument("ones", INITIAL, {"use_bias": True}),
    "kernel_regularizer": Argument("l2", LOSSES),
    "bias_regularizer": Argument("l2", LOSSES, {"use_bias": True}),
    "kernel_constraint": Argument("non_neg", STEP),
    "bias_constraint": Argument("non_neg", STEP, {"use_bias": True}),
    "seed": Argument(5, TRAINING, {"seed": 4, "dropout": 0.5}),
}
GATED_ARGUMENTS = {
    **ARGUMENTS,
    "variant": Argument("geglu"),
    "width_rule": Argument("two_thirds"),
    "limit": Argument(0.5),
    "gate_first": Argument(True),
    "product_dtype": Argument("float16"),
}


def feed_forward_case(layer, id, arguments, **fields):
    return Case(
        **{
            "id": id,
            "layer": layer,
            "registered_name": f"keras_gating>{layer.__name__}",
            "kwargs": {"hidden_dim": 12},
            "inputs": {"inputs": Tensor((2, 5, 7))},
            "lengths": (5,),
            "options": (Option("training", {"training": False}),),
            "masked": ("inputs",),
            "padded": True,
            "arguments": arguments,
            **fields,
        }
    )


def feed_forward_cases():
    yield feed_forward_case(
        layers.FeedForward,
        "feed_forward",
        {**ARGUMENTS, "activation": Argument("tanh")},
        weights=("hidden/kernel", "projection/kernel"),
    )
    yield feed_forward_case(
        layers.FeedForward,
        "feed_forward_image",
        {},
        kwargs={"hidden_dim": 1, "activation": "gelu", "use_bias": True},
        inputs={"inputs": Tensor((2, 5, 6, 7))},
        lengths=(5, 6),
        weights=(
            *("hidden/kernel", "hidden/bias"),
            *("projection/kernel", "projection/bias"),
        ),
    )
    yield feed_forward_case(
        layers.GatedFeedForward,
        "gated_feed_forward",
        GATED_ARGUMENTS,
        weights=("hidden/projection/kernel", "projection/kernel"),
    )
    yield feed_forward_case(
        layers.GatedFeedForward,
        "gated_feed_forward_image",
        {},
        kwargs={
            "hidden_dim": 12,
            "variant": "geglu_tanh",
            "width_rule": "two_thirds",
            "use_bias": True,
            "output_dim": 10,
        },
        inputs={"inputs": Tensor((2, 5, 6, 7))},
        lengths=(5, 6),
        weights=(
            *("hidden/projection/kernel", "hidden/projection/bias"),
            *("projection/kernel", "projection/bias"),
        ),
    )
