"""Precisions in which an accelerator computes products."""

import keras

from keras_gating import _backend


def precisions():
    """Names of the precisions to measure: on a CPU float32 alone."""
    if _backend.platform() == "cpu":
        return ["float32"]
    return ["float32", "TensorFloat", "bfloat16"]


def use(name):
    """Sets the precision of products and returns the policy of layers."""
    is_fast = name == "TensorFloat"
    backend = keras.config.backend()
    if backend == "jax":
        import jax

        precision = {"float32": "highest", "TensorFloat": "tensorfloat32"}
        jax.config.update("jax_default_matmul_precision", precision.get(name))
    elif backend == "tensorflow":
        import tensorflow as tf

        tf.config.experimental.enable_tensor_float_32_execution(is_fast)
    else:
        import torch

        torch.set_float32_matmul_precision("high" if is_fast else "highest")
    return "mixed_bfloat16" if name == "bfloat16" else "float32"
