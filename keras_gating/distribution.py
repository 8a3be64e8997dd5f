"""Weights of the layers split over devices."""

import re

import keras

from keras_gating import _keras
from keras_gating.layers.weight_axes import weight_in_creation

__all__ = ["layout_map"]

# Attention layers of Keras have the same names and axes.
_KERAS_ATTENTION = {
    r".+/(query|key|value)/kernel": 1,
    r".+/(query|key|value)/bias": 0,
    r".+/attention_output/kernel": 0,
}


def layout_map(device_mesh, model_axis="model"):
    """Layouts for tensor parallelism with `keras.distribution.ModelParallel`.

    Each device keeps a part of every large kernel:

    | weights | axis that is split |
    | --- | --- |
    | `GatedAttention`: query, key and value, and their gates | heads |
    | `GatedAttention`: output projection | heads, which it adds up |
    | gates of features, `Gate` | gated features or heads |
    | gated linear units, `FeedForward`, `GatedFeedForward` | hidden features |
    | `GatedAttentionUnit` | hidden features |

    A gate lies on the device of the heads that it multiplies, so the product
    needs no communication; a layer communicates once, after its output
    projection. Everything else is copied to every device: normalization,
    squeeze-and-excitation and convolutions of gates, kernels of low rank.

    An axis that is shorter than `model_axis` is not split: with fewer
    key/value heads than devices (`num_key_value_heads`) keys, values and their
    gates are copied, as are gates of one value. A longer axis has to be
    divisible.

    The attention layers of Keras are split alike. Entries for other layers, or
    instead of these, are added as to any `keras.distribution.LayoutMap`; they
    go first.

    Args:
        device_mesh: a `keras.distribution.DeviceMesh`.
        model_axis: name of the axis of the mesh to split over.

    Returns:
        A `keras.distribution.LayoutMap`.

    Raises:
        ValueError: if the mesh has no such axis; later, when a layer is
            built, if an axis of a weight cannot be divided.

    Example:

    >>> import keras
    >>> from keras_gating import distribution
    >>> mesh = keras.distribution.DeviceMesh(
    ...     (1, 2), ("batch", "model"), ["cpu:0", "cpu:1"])
    >>> layouts = distribution.layout_map(mesh)
    >>> layouts["attention/query/kernel"].axes
    (None, 'model')

    With JAX, on a machine of eight devices:

    ```
    mesh = keras.distribution.DeviceMesh((2, 4), ("batch", "model"))
    keras.distribution.set_distribution(
        keras.distribution.ModelParallel(
            layout_map=distribution.layout_map(mesh), batch_dim_name="batch"
        )
    )
    model = make_model()  # and compile and fit it as ever
    ```

    Reference:
        Shoeybi et al. 2019, Megatron-LM, arXiv 1909.08053.
    """
    if not isinstance(device_mesh, keras.distribution.DeviceMesh):
        raise ValueError(
            "`device_mesh` must be a `keras.distribution.DeviceMesh`. "
            f"Received: device_mesh={device_mesh!r}"
        )
    names = device_mesh.axis_names
    if not isinstance(model_axis, str) or model_axis not in names:
        raise ValueError(
            "`model_axis` must be an axis of the mesh, one of "
            f"{', '.join(map(repr, names))}. Received: "
            f"model_axis={model_axis!r}"
        )
    return _LayoutMap(device_mesh, model_axis)


class _LayoutMap(keras.distribution.LayoutMap):
    """Also asks the layer that creates a weight which axis to split."""

    def __init__(self, device_mesh, model_axis):
        super().__init__(device_mesh)
        self._model_axis = model_axis
        axis = device_mesh.axis_names.index(model_axis)
        self._num_parts = device_mesh.shape[axis]

    def __getitem__(self, key):
        entry = super().__getitem__(key)
        if entry is not None:
            return entry
        weight = weight_in_creation()
        if weight is not None:
            axis = weight.axis
            size = None if axis is None else weight.shape[axis]
            return self._split_evenly(key, axis, size)
        for pattern, axis in _KERAS_ATTENTION.items():
            if re.fullmatch(pattern, key):
                layers = _keras.layers_in_scope()
                # Outside of all layers there is nothing but the path.
                size = _heads(layers, key) if layers else self._num_parts
                return self._split_evenly(key, axis, size)
        return None

    def _split_evenly(self, path, axis, size):
        if size is None or size < self._num_parts:
            return None
        if size % self._num_parts:
            raise ValueError(
                f"Axis {axis} of {path!r}, of size {size}, cannot be split "
                f"evenly over the {self._num_parts} devices "
                f"of the axis {self._model_axis!r} of the mesh. Choose sizes "
                "(of heads or features) that are multiples, or add an entry "
                "for this weight to the layout map."
            )
        # Axes that are not named are not split.
        axes = (*[None] * axis, self._model_axis)
        return keras.distribution.TensorLayout(axes, self.device_mesh)


def _heads(layers, path):
    """Heads that attention of Keras has in a weight; `None` in other layers.

    Args:
        layers: what is being built, the layer of the weight last.
        path: path of the weight.
    """
    owner = layers[-2] if len(layers) > 1 else None
    if isinstance(owner, keras.layers.MultiHeadAttention):
        return owner.num_heads
    if isinstance(owner, keras.layers.GroupQueryAttention):
        is_shared = path.split("/")[-2] in ("key", "value")
        return owner.num_key_value_heads if is_shared else owner.num_query_heads
    return None
