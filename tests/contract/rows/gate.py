"""Rows of `Gate`."""

from keras_gating import layers
from tests.contract import case as effects
from tests.contract.case import Argument
from tests.contract.case import Case
from tests.contract.case import Option
from tests.contract.case import Tensor


def gate_arguments():
    """An entry for each argument of `Gate`."""
    return {
        "activation": Argument("tanh"),
        "granularity": Argument("headwise"),
        "source": Argument("constant"),
        "rank": Argument(3),
        "use_bias": Argument(False),
        "scale": Argument(2.0),
        "kernel_initializer": Argument("ones", effects.INITIAL_OUTPUTS),
        "bias_initializer": Argument("ones", effects.INITIAL_OUTPUTS),
        "dropout": Argument(0.5, effects.TRAINING_OUTPUTS, {"seed": 4}),
        "kernel_regularizer": Argument("l2", effects.LOSSES),
        "bias_regularizer": Argument("l2", effects.LOSSES),
        "kernel_constraint": Argument("non_neg", effects.WEIGHTS_AFTER_STEP),
        "bias_constraint": Argument("non_neg", effects.WEIGHTS_AFTER_STEP),
        "seed": Argument(
            5, effects.TRAINING_OUTPUTS, {"seed": 4, "dropout": 0.5}
        ),
    }


def gate_cases():
    yield Case(
        id="gate",
        layer=layers.Gate,
        registered_name="keras_gating>Gate",
        kwargs={},
        inputs={"inputs": Tensor((2, 5, 7))},
        lengths=(5,),
        options=(
            Option("source", {"source": Tensor((2, 5, 11))}),
            Option("training", {"training": True}),
        ),
        weights=("projection/kernel", "projection/bias"),
        masked=("inputs",),
        padded=True,
        arguments=gate_arguments(),
    )
    yield Case(
        id="gate_heads",
        layer=layers.Gate,
        registered_name="keras_gating>Gate",
        kwargs={"granularity": "headwise", "rank": 4, "dropout": 0.1},
        inputs={
            "inputs": Tensor((2, 5, 3, 6)),
            "source": Tensor((2, 5, 7)),
        },
        lengths=(5,),
        options=(
            Option("mask", {"mask": Tensor((2, 5), "bool")}),
            Option("inputs_mask", {"inputs_mask": Tensor((2, 5), "bool")}),
            Option("training", {"training": False}),
        ),
        weights=(
            "reduction/kernel",
            "projection/kernel",
            "projection/bias",
        ),
        masked=("inputs",),
        padded=True,
    )
    yield Case(
        id="gate_constant",
        layer=layers.Gate,
        registered_name="keras_gating>Gate",
        kwargs={
            "source": "constant",
            "activation": "linear",
            "bias_initializer": "ones",
        },
        inputs={"inputs": Tensor((2, 5, 7))},
        lengths=(5,),
        options=(
            Option("training", {"training": False}),
            Option("source", {"source": Tensor((2, 5, 11))}),
        ),
        weights=("bias",),
        masked=("inputs",),
        padded=True,
    )
