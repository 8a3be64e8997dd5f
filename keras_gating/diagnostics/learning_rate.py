"""Learning rates of optimizers, as callbacks change them."""

import keras


def learning_rates(optimizer):
    """Learning rates by the keys that Keras logs them under."""
    own = getattr(optimizer, "optimizers", None)
    if own is None:
        return {"learning_rate": _value(optimizer)}
    return {f"learning_rate_{one.name}": _value(one) for one in own}


def check_settable(optimizer):
    """Raises if a learning rate is a schedule."""
    for one in _optimizers(optimizer):
        try:
            one.learning_rate = _value(one)
        # What Keras raises for a schedule and for a function.
        except (TypeError, AttributeError):
            raise ValueError(
                'action="reduce_lr" needs an optimizer whose learning rate is '
                "a number, neither a schedule nor a function. Received: "
                f"{type(one).__name__} {one.name!r}, which computes its own"
            ) from None


def lower(optimizer, factor, lowest):
    """Multiplies the learning rate by `factor`, not below `lowest`."""
    for one in _optimizers(optimizer):
        rate = _value(one)
        if rate > lowest:
            one.learning_rate = max(rate * factor, lowest)


def _optimizers(optimizer):
    return getattr(optimizer, "optimizers", [optimizer])


def _value(optimizer):
    return float(keras.ops.convert_to_numpy(optimizer.learning_rate))
