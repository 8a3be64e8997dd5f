"""All layers side by side in one model, which is exported as a whole."""

import dataclasses
import functools

import keras
import numpy as np

from tests.cases import CASES
from tests.contract.case import Case
from tests.contract.case import Option
from tests.contract.helpers import NO_OPTIONS
from tests.contract.helpers import apply
from tests.contract.helpers import create
from tests.contract.helpers import draw
from tests.contract.helpers import loosened
from tests.utils import random_weights
from tests.utils import to_numpy

# Every public layer, and what takes another way through it.
CHOSEN = (
    "gate",
    "gate_heads",
    "curvature_gate",
    "curvature_gate_stereographic",
    "attention",
    "attention_self causal",
    "attention_block mask_b1tt_causal",
    "gated_attention_unit mask_b1t_causal",
    "gated_attention_unit_chunked causal",
    "glu",
    "bilinear",
    "reglu",
    "swiglu",
    "geglu",
    "feed_forward",
    "gated_feed_forward",
    "squeeze_excite",
    "eca",
    "channel_gate",
    "spatial_gate",
    "cbam",
)
# What unknown sizes are while a model is exported, and later.
OTHER_SIZES = {2: 3, 4: 6, 5: 7, 6: 8}


@dataclasses.dataclass(frozen=True)
class Branch:
    """A case with one of its options."""

    case: Case
    option: Option

    @property
    def id(self):
        if self.option is NO_OPTIONS:
            return self.case.id
        return f"{self.case.id} {self.option.id}"


BRANCHES = [
    branch
    for case in CASES
    for option in (NO_OPTIONS, *case.options)
    if (branch := Branch(case, option)).id in CHOSEN
]


@dataclasses.dataclass(frozen=True)
class Spec:
    """An input: its sizes, `None` where unknown, and those at the export."""

    shape: tuple
    example: tuple
    dtype: str

    def shape_with(self, sizes):
        return tuple(
            sizes.get(size, size) if unknown is None else size
            for unknown, size in zip(self.shape, self.example)
        )

    def array(self, sizes):
        shape = self.shape_with(sizes)
        rng = np.random.default_rng(len(shape) + sum(self.example))
        if self.dtype == "bool":
            mask = rng.random(shape) < 0.6
            mask[..., 0] = True
            return mask
        return rng.normal(size=shape).astype(self.dtype)


class SideBySide:
    """A model of branches: inputs of equal shape are one, outputs in order."""

    def __init__(self, symbols, outputs):
        self._expected = {}
        self.branches = list(outputs)
        used = {
            id(tensor)
            for branch in self.branches
            for tensor in outputs[branch][1]
        }
        symbols = {s: x for s, x in symbols.items() if id(x) in used}
        self.specs = list(symbols)
        self.model = keras.Model(
            list(symbols.values()), [x for x, _ in outputs.values()]
        )

    def arrays(self, sizes):
        return [spec.array(sizes) for spec in self.specs]

    def expected(self, sizes):
        """What the model itself returns, once for each choice of sizes."""
        key = tuple(sizes.items())
        if key not in self._expected:
            # Compiled where a call would compile each operation.
            jax = keras.config.backend() == "jax"
            model = self.model.predict_on_batch if jax else self.model
            outputs = keras.tree.flatten(model(self.arrays(sizes)))
            self._expected[key] = [to_numpy(x) for x in outputs]
        return self._expected[key]


@functools.cache
def _graph():
    symbols, outputs = {}, {}
    for branch in BRANCHES:
        case, used = branch.case, []

        def symbol(leaf, case=case, used=used):
            if not isinstance(leaf, np.ndarray):
                return leaf
            spec = Spec(loosened(case, leaf.shape), leaf.shape, leaf.dtype.name)
            if spec not in symbols:
                symbols[spec] = keras.Input(
                    batch_shape=spec.shape,
                    dtype=spec.dtype,
                    name=f"input_{len(symbols)}",
                )
            used.append(symbols[spec])
            return symbols[spec]

        layer = random_weights(create(case))
        values = draw(case, branch.option, layer)
        values = keras.tree.map_structure(symbol, values)
        outputs[branch.id] = (apply(case, layer, values), used)
    return symbols, outputs


@functools.cache
def side_by_side(without=()):
    """The model of all branches but some."""
    symbols, outputs = _graph()
    outputs = {k: v for k, v in outputs.items() if k not in without}
    return SideBySide(symbols, outputs)
