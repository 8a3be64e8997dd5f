"""Keras' own tests of `MultiHeadAttention`, on `GatedAttention`."""

import keras

from keras_gating.layers import GatedAttention
from tests.keras_suite import substitute


@keras.saving.register_keras_serializable("keras_suite")
class MultiHeadAttention(GatedAttention):
    """`GatedAttention` as Keras names things: ungated unless asked."""

    def __init__(self, *args, use_gate=False, **kwargs):
        super().__init__(*args, use_gate=use_gate, **kwargs)

    @property
    def _query_dense(self):
        return self.query_dense

    @property
    def _key_dense(self):
        return self.key_dense

    @property
    def _value_dense(self):
        return self.value_dense

    @property
    def _output_dense(self):
        return self.output_dense

    @property
    def _gate_dense(self):
        dense = keras.layers.EinsumDense
        children = self.output_gate._flatten_layers(include_self=False)
        (child,) = (layer for layer in children if isinstance(layer, dense))
        return child

    @property
    def _flash_attention(self):
        return self.flash_attention

    @property
    def _sliding_window(self):
        return self.sliding_window


# At most three, each with its reason.
LEFT_OUT: dict[str, str] = {}

_suite = substitute.load(
    "multi_head_attention_test.py", MultiHeadAttention=MultiHeadAttention
)
MultiHeadAttentionTest = substitute.leave_out(
    _suite.MultiHeadAttentionTest, LEFT_OUT
)


def test_few_tests_are_left_out():
    assert len(LEFT_OUT) <= 3
    assert set(LEFT_OUT) <= set(substitute.tests_of(MultiHeadAttentionTest))
    assert all(LEFT_OUT.values())


def test_the_whole_suite_is_collected():
    tests = substitute.tests_of(MultiHeadAttentionTest)
    assert len(tests) >= 50
    if keras.__version__ == "3.15.1":
        assert len(tests) == 50


def test_the_class_is_exchanged_in_the_suite_only():
    assert _suite.layers.MultiHeadAttention is MultiHeadAttention
    assert _suite.layers.Embedding is keras.layers.Embedding
    assert keras.layers.MultiHeadAttention is not MultiHeadAttention
    from keras.src import layers

    assert layers.MultiHeadAttention is keras.layers.MultiHeadAttention
