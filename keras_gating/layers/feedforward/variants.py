"""The gated linear units that have a name of their own."""

import keras
from keras import activations

from keras_gating.functional import checks
from keras_gating.layers.feedforward.gated_linear_unit import GatedLinearUnit


@keras.saving.register_keras_serializable(package="keras_gating")
class BilinearGLU(GatedLinearUnit):
    """Bilinear unit, a gated linear unit without activation.

    `outputs = (x W + b) ⊙ (x V + c)`

    Args:
        units: number of output features.
        **kwargs: the other arguments of `GLU`, except `activation`.

    Example:

    >>> import numpy as np
    >>> from keras_gating.layers import BilinearGLU
    >>> tuple(BilinearGLU(8)(np.ones((2, 4))).shape)
    (2, 8)

    References:
        Shazeer 2020, arXiv 2002.05202.
    """

    activation = staticmethod(activations.linear)


@keras.saving.register_keras_serializable(package="keras_gating")
class ReGLU(GatedLinearUnit):
    """Gated linear unit with a ReLU gate.

    `outputs = (x W + b) ⊙ relu(x V + c)`

    Args:
        units: number of output features.
        **kwargs: the other arguments of `GLU`, except `activation`.

    Example:

    >>> import numpy as np
    >>> from keras_gating.layers import ReGLU
    >>> tuple(ReGLU(8)(np.ones((2, 4))).shape)
    (2, 8)

    References:
        Shazeer 2020, arXiv 2002.05202.
    """

    activation = staticmethod(activations.relu)


@keras.saving.register_keras_serializable(package="keras_gating")
class SwiGLU(GatedLinearUnit):
    """Gated linear unit with a SiLU (Swish) gate.

    `outputs = (x W + b) ⊙ silu(x V + c)`, `silu(z) = z · sigmoid(z)`

    Args:
        units: number of output features.
        **kwargs: the other arguments of `GLU`, except `activation`.

    Example:

    >>> import numpy as np
    >>> from keras_gating.layers import SwiGLU
    >>> tuple(SwiGLU(8)(np.ones((2, 4))).shape)
    (2, 8)

    References:
        Shazeer 2020, arXiv 2002.05202.
    """

    activation = staticmethod(activations.silu)


@keras.saving.register_keras_serializable(package="keras_gating")
class GEGLU(GatedLinearUnit):
    """Gated linear unit with a GELU gate.

    `outputs = (x W + b) ⊙ gelu(x V + c)`

    Args:
        units: number of output features.
        approximate: whether GELU is its tanh approximation (as in T5 and
            Gemma) or exact. The two differ by up to 5e-4. Defaults to `False`.
        **kwargs: the other arguments of `GLU`, except `activation`.

    Example:

    >>> import numpy as np
    >>> from keras_gating.layers import GEGLU
    >>> tuple(GEGLU(8, approximate=True)(np.ones((2, 4))).shape)
    (2, 8)

    References:
        Shazeer 2020, arXiv 2002.05202.
    """

    def __init__(self, units, approximate=False, **kwargs):
        super().__init__(units, **kwargs)
        self.approximate = checks.boolean("approximate", approximate)

    def activation(self, x):
        return activations.gelu(x, approximate=self.approximate)

    def get_config(self):
        return {**super().get_config(), "approximate": self.approximate}
