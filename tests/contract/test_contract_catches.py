"""The generic checks fail on layers that break a rule.

`Scale` obeys every rule; each of the classes below it breaks one.
"""

import keras
import pytest
from keras import ops

from tests.contract import case as effects
from tests.contract import test_build
from tests.contract import test_config
from tests.contract import test_dtypes
from tests.contract import test_masks
from tests.contract import test_saving
from tests.contract import test_symbolic
from tests.contract import test_training
from tests.contract.case import Argument
from tests.contract.case import Case
from tests.contract.case import Option
from tests.contract.case import Tensor
from tests.contract.helpers import NO_OPTIONS


@keras.saving.register_keras_serializable(package="tests")
class Scale(keras.layers.Layer):
    """`factor · inputs ⊙ kernel + bias`, summed over time on demand.

    Args:
        factor: a number.
        **kwargs: `name`, `dtype` and `trainable`.
    """

    def __init__(self, factor=1.0, **kwargs):
        super().__init__(**kwargs)
        self.factor = factor
        self.supports_masking = True

    def build(self, inputs_shape):
        width = inputs_shape[-1]
        self.kernel = self.add_weight((width,), "ones", name="kernel")
        self.bias = self.add_weight((width,), "zeros", name="bias")

    def call(self, inputs, shift=None, total=False, mask=None):
        outputs = self.factor * inputs * self.kernel + self.bias
        if shift is not None:
            outputs = outputs + shift
        return ops.sum(outputs, axis=1) if total else outputs

    def compute_output_spec(self, inputs, shift=None, total=False, mask=None):
        shape = inputs.shape
        shape = (shape[0], *shape[2:]) if total else shape
        return keras.KerasTensor(shape, self.compute_dtype)

    def compute_output_shape(self, inputs_shape):
        return inputs_shape

    def get_config(self):
        return {**super().get_config(), "factor": self.factor}


class NotInConfig(Scale):
    def get_config(self):
        config = super().get_config()
        del config["factor"]
        return config


class NotDocumented(Scale):
    def __init__(self, factor=1.0, other=2.0, **kwargs):
        super().__init__(factor, **kwargs)
        self.other = other

    def get_config(self):
        return {**super().get_config(), "other": self.other}


class Ignored(Scale):
    def call(self, inputs, shift=None, total=False, mask=None):
        return inputs * self.kernel + self.bias


@keras.saving.register_keras_serializable(package="tests")
class ConfigChangesInBuild(Scale):
    def build(self, inputs_shape):
        super().build(inputs_shape)
        self.factor = float(self.factor) + 1.0


class WrongShape(Scale):
    def compute_output_spec(self, inputs, shift=None, total=False, mask=None):
        return keras.KerasTensor(inputs.shape, self.compute_dtype)


class WrongDtype(Scale):
    def compute_output_spec(self, inputs, shift=None, total=False, mask=None):
        spec = super().compute_output_spec(inputs, shift, total)
        return keras.KerasTensor(spec.shape, "float64")


class OtherOrder(Scale):
    def build(self, inputs_shape):
        width = inputs_shape[-1]
        self.bias = self.add_weight((width,), "zeros", name="bias")
        self.kernel = self.add_weight((width,), "ones", name="kernel")


class BuildsInCall(Scale):
    def build(self, inputs_shape):
        width = inputs_shape[-1]
        self.kernel = self.add_weight((width,), "ones", name="kernel")
        self.bias = 0.0

    def call(self, inputs, shift=None, total=False, mask=None):
        if not self._called_before():
            self._tracker.unlock()
            self.bias = self.add_weight(
                (inputs.shape[-1],), "zeros", name="bias"
            )
        return super().call(inputs, shift, total)

    def _called_before(self):
        return isinstance(self.bias, keras.Variable)


class DropsMask(Scale):
    def __init__(self, factor=1.0, **kwargs):
        super().__init__(factor, **kwargs)
        self.supports_masking = False


class StripsCallersMask(Scale):
    def call(self, inputs, shift=None, total=False, mask=None):
        keras.src.backend.set_keras_mask(inputs, None)
        return super().call(inputs, shift, total)


class LeaksPadding(Scale):
    def call(self, inputs, shift=None, total=False, mask=None):
        outputs = super().call(inputs, shift, total)
        return outputs + ops.mean(inputs, axis=1, keepdims=True)


class KeepsTensor(Scale):
    def call(self, inputs, shift=None, total=False, mask=None):
        outputs = super().call(inputs, shift, total)
        self.last = [outputs]
        return outputs


class IdleWeight(Scale):
    def call(self, inputs, shift=None, total=False, mask=None):
        return self.factor * inputs * self.kernel


class HalfPrecisionEscapes(Scale):
    def call(self, inputs, shift=None, total=False, mask=None):
        return ops.cast(super().call(inputs, shift, total), "float32")


@keras.saving.register_keras_serializable(package="tests")
class ForgetsWeights(Scale):
    def load_own_variables(self, store):
        self.bias.assign(store["1"])


TOTAL = Option("total", {"total": True})


def toy(layer, **fields):
    return Case(
        **{
            "id": "toy",
            "layer": layer,
            "registered_name": "tests>Scale",
            "kwargs": {},
            "inputs": {"inputs": Tensor((2, 5, 7))},
            "lengths": (5,),
            "options": (Option("shift", {"shift": Tensor((2, 5, 7))}), TOTAL),
            "weights": ("kernel", "bias"),
            "arguments": {"factor": Argument(3.0)},
            "masked": ("inputs",),
            "padded": True,
            **fields,
        }
    )


def check_policy(case):
    test_dtypes.check_policy(case, "float16")


def check_options(case):
    test_symbolic.check_options_are_listed([case])


def with_argument(check):
    return lambda case: check(case, "factor")


def with_option(check, option=TOTAL):
    return lambda case: check(case, option)


def check_padding(case):
    test_masks.check_padding_is_invisible(case, (1e4,))


CHECKS = {
    "arguments are listed": test_config.check_arguments_are_listed,
    "argument does something": with_argument(test_config.check_argument),
    "config is what was passed": with_argument(
        test_config.check_config_is_what_was_passed
    ),
    "round trip": test_config.check_round_trip,
    "weight order": test_build.check_weight_order,
    "build by shape": test_build.check_build_by_shape,
    "options are listed": check_options,
    "symbolic equals eager": with_option(
        test_symbolic.check_symbolic_equals_eager
    ),
    "other sizes": with_option(test_symbolic.check_one_model_for_other_sizes),
    "mask survives": with_option(test_masks.check_mask_survives, NO_OPTIONS),
    "padding is invisible": check_padding,
    "policy": check_policy,
    "training step": test_training.check_training_step,
}
BROKEN = [
    (NotInConfig, "arguments are listed"),
    (NotDocumented, "arguments are listed"),
    (Ignored, "argument does something"),
    (ConfigChangesInBuild, "config is what was passed"),
    (OtherOrder, "weight order"),
    (BuildsInCall, "build by shape"),
    (WrongShape, "symbolic equals eager"),
    (WrongDtype, "symbolic equals eager"),
    (DropsMask, "mask survives"),
    (StripsCallersMask, "mask survives"),
    (LeaksPadding, "padding is invisible"),
    (KeepsTensor, "training step"),
    (IdleWeight, "training step"),
    (HalfPrecisionEscapes, "policy"),
]


@pytest.mark.parametrize("name", CHECKS)
def test_sound_layer_passes(name):
    CHECKS[name](toy(Scale))


@pytest.mark.parametrize(
    ("layer", "name"), BROKEN, ids=[layer.__name__ for layer, _ in BROKEN]
)
def test_broken_layer_is_caught(layer, name):
    case = toy(layer)
    with pytest.raises((AssertionError, UserWarning)):
        CHECKS[name](case)


def test_argument_without_entry_is_caught():
    with pytest.raises(AssertionError, match="without an entry"):
        test_config.check_arguments_are_listed(toy(Scale, arguments={}))


def test_argument_that_does_not_raise_is_caught():
    case = toy(Scale, arguments={"factor": Argument(3.0, effects.RAISES)})
    with pytest.raises(pytest.fail.Exception):
        test_config.check_argument(case, "factor")


def test_call_argument_without_option_is_caught():
    with pytest.raises(AssertionError, match="without an option"):
        check_options(toy(Scale, options=()))


def test_idle_weight_that_moves_is_caught():
    case = toy(Scale, idle_weights={"bias": "no reason"})
    with pytest.raises(AssertionError, match="idle"):
        test_training.check_training_step(case)


def test_lost_weights_are_caught(tmp_path):
    sound = test_saving.random_model(toy(Scale))
    test_saving.check_save_and_load(toy(Scale), sound, tmp_path)
    broken = test_saving.random_model(toy(ForgetsWeights))
    with pytest.raises(AssertionError):
        test_saving.check_save_and_load(toy(ForgetsWeights), broken, tmp_path)
