"""Rows of `CurvatureGate`."""

from keras_gating import layers
from tests.contract import case as effects
from tests.contract.case import Argument
from tests.contract.case import Case
from tests.contract.case import Option
from tests.contract.case import Tensor
from tests.contract.rows.gate import gate_arguments

_STEREOGRAPHIC = {"chart": "stereographic"}
_NAME = "keras_gating>CurvatureGate"


def curvature_gate_cases():
    yield Case(
        id="curvature_gate",
        layer=layers.CurvatureGate,
        registered_name=_NAME,
        kwargs={"lift": True},
        inputs={"inputs": Tensor((2, 5, 7))},
        lengths=(5,),
        options=(Option("training", {"training": True}),),
        weights=("kappa",),
        float32_weights=("kappa",),
        masked=("inputs",),
        padded=True,
    )
    yield Case(
        id="curvature_gate_stereographic",
        layer=layers.CurvatureGate,
        registered_name=_NAME,
        kwargs=_STEREOGRAPHIC,
        inputs={"inputs": Tensor((2, 5, 7))},
        lengths=(5,),
        options=(
            Option("source", {"source": Tensor((2, 5, 11))}),
            Option("training", {"training": True}),
        ),
        weights=("kappa", "projection/kernel", "projection/bias"),
        float32_weights=("kappa",),
        masked=("inputs",),
        padded=True,
        arguments={
            **gate_arguments(),
            "granularity": Argument("elementwise"),
            "curvature": Argument(0.5, effects.INITIAL_OUTPUTS),
            "chart": Argument("gnomonic"),
            "lift": Argument(True, effects.RAISES),
            "curvature_trainable": Argument(False, effects.WEIGHTS_AFTER_STEP),
            "curvature_speed": Argument(2.0),
        },
    )
