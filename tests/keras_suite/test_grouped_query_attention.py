"""Keras' own tests of `GroupQueryAttention`, on `GatedAttention`."""

import keras

from keras_gating.layers import GatedAttention
from tests.keras_suite import substitute


@keras.saving.register_keras_serializable("keras_suite")
class GroupedQueryAttention(GatedAttention):
    """`GatedAttention` behind the names of Keras' grouped layer."""

    def __init__(
        self,
        head_dim,
        num_query_heads,
        num_key_value_heads,
        use_gate=False,
        **kwargs,
    ):
        super().__init__(
            num_heads=num_query_heads,
            key_dim=head_dim,
            num_key_value_heads=num_key_value_heads,
            use_gate=use_gate,
            **kwargs,
        )
        self._return_attention_scores = False

    def __init_subclass__(cls, **kwargs):
        """Lets a subclass override `_compute_attention` as Keras spells it.

        There the scores are asked for by a flag on the layer, not by an
        argument.
        """
        super().__init_subclass__(**kwargs)
        override = cls.__dict__.get("_compute_attention")
        if override is None:
            return

        def compute(
            self,
            query,
            key,
            value,
            attention_mask=None,
            training=None,
            return_attention_scores=False,
        ):
            self._return_attention_scores = return_attention_scores
            return override(
                self,
                query,
                key,
                value,
                attention_mask=attention_mask,
                training=training,
            )

        cls._compute_attention = compute

    def get_config(self):
        config = super().get_config()
        config["head_dim"] = config.pop("key_dim")
        config["num_query_heads"] = config.pop("num_heads")
        return config

    def compute_output_shape(self, query_shape, value_shape, key_shape=None):
        if query_shape[-1] != value_shape[-1]:
            raise ValueError(
                "The last dimensions of `query` and `value` must be equal."
            )
        return super().compute_output_shape(query_shape, value_shape, key_shape)

    def _compute_attention(
        self,
        query,
        key,
        value,
        attention_mask=None,
        training=None,
        return_attention_scores=None,
        use_causal_mask=False,
    ):
        if return_attention_scores is None:
            return_attention_scores = self._return_attention_scores
        return super()._compute_attention(
            query,
            key,
            value,
            attention_mask,
            training,
            return_attention_scores,
            use_causal_mask=use_causal_mask,
        )

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


# At most three, each with its reason.
LEFT_OUT: dict[str, str] = {}

_suite = substitute.load(
    "grouped_query_attention_test.py",
    GroupedQueryAttention=GroupedQueryAttention,
)
GroupedQueryAttentionTest = substitute.leave_out(
    _suite.GroupedQueryAttentionTest, LEFT_OUT
)


def test_few_tests_are_left_out():
    assert len(LEFT_OUT) <= 3
    assert set(LEFT_OUT) <= set(substitute.tests_of(GroupedQueryAttentionTest))
    assert all(LEFT_OUT.values())


def test_the_whole_suite_is_collected():
    tests = substitute.tests_of(GroupedQueryAttentionTest)
    assert len(tests) >= 30
    if keras.__version__ == "3.15.1":
        assert len(tests) == 30
