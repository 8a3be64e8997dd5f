"""Gates for models that exist already, and weights from elsewhere."""

from keras_gating.surgery.weights import copy_weights

__all__ = ["copy_weights"]
