"""Rows of `GLU` and of the gated linear units with a name of their own."""

from keras_gating import layers
from tests.contract import case as effects
from tests.contract.case import Argument
from tests.contract.case import Case
from tests.contract.case import Tensor

INITIAL, LOSSES = effects.INITIAL_OUTPUTS, effects.LOSSES
STEP = effects.WEIGHTS_AFTER_STEP

ARGUMENTS = {
    "units": Argument(6),
    "gate_first": Argument(True),
    "limit": Argument(0.5),
    "product_dtype": Argument("float16"),
    "use_bias": Argument(False),
    "kernel_initializer": Argument("ones", INITIAL),
    "bias_initializer": Argument("ones", INITIAL),
    "kernel_regularizer": Argument("l2", LOSSES),
    "bias_regularizer": Argument("l2", LOSSES),
    "kernel_constraint": Argument("non_neg", STEP),
    "bias_constraint": Argument("non_neg", STEP),
}
# Without an activation the order of the halves is a matter of naming, so one
# that also clamps shows it.
CLAMPED = {"gate_first": Argument(True, companions={"limit": 0.5})}


def glu_case(layer, id, arguments, **fields):
    return Case(
        **{
            "id": id,
            "layer": layer,
            "registered_name": f"keras_gating>{layer.__name__}",
            "kwargs": {"units": 8},
            "inputs": {"inputs": Tensor((2, 5, 7))},
            "lengths": (5,),
            "weights": ("projection/kernel", "projection/bias"),
            "masked": ("inputs",),
            "padded": True,
            "arguments": arguments,
            **fields,
        }
    )


def glu_cases():
    activation = {"activation": Argument("tanh")}
    yield glu_case(layers.GLU, "glu", {**ARGUMENTS, **activation})
    yield glu_case(
        layers.GLU,
        "glu_image",
        {},
        inputs={"inputs": Tensor((2, 5, 6, 7))},
        kwargs={"units": 1, "activation": "gelu", "gate_first": True},
        lengths=(5, 6),
    )
    yield glu_case(
        layers.GLU,
        "glu_vector",
        {},
        inputs={"inputs": Tensor((2, 7))},
        lengths=(),
        masked=(),
        padded=False,
    )
    yield glu_case(layers.BilinearGLU, "bilinear", {**ARGUMENTS, **CLAMPED})
    yield glu_case(layers.ReGLU, "reglu", ARGUMENTS)
    yield glu_case(layers.SwiGLU, "swiglu", ARGUMENTS)
    approximate = {"approximate": Argument(True)}
    yield glu_case(layers.GEGLU, "geglu", {**ARGUMENTS, **approximate})
