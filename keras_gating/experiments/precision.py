"""The widest floats that the backend computes with."""

import keras
import numpy as np
from keras import ops


def float_type():
    """`"float64"`, or `"float32"` on JAX unless 64 bits are enabled.

    The command line enables them for the experiments on curvature; from Python
    set `JAX_ENABLE_X64=1` before the first import of Keras.
    """
    dtype = ops.convert_to_tensor(np.zeros(1)).dtype
    return keras.backend.standardize_dtype(dtype)
