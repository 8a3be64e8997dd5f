"""What is drawn is what was measured."""

import functools

import numpy as np
import pytest
from keras import ops

from keras_gating import geometry
from keras_gating import layers
from keras_gating.diagnostics import gate_statistics
from keras_gating.diagnostics import plot_attention
from keras_gating.diagnostics import plot_curvature
from keras_gating.diagnostics import plot_gates
from keras_gating.diagnostics import record_gates
from keras_gating.diagnostics.paths import shortened
from keras_gating.geometry import surfaces
from tests.diagnostics import models


@functools.cache
def record():
    model = models.model()
    with record_gates(model, scores=True) as made:
        models.in_batches(model, models.sequences())
    return made


def axes(figure, title):
    (found,) = [a for a in figure.axes if title in titles(a)]
    return found


def titles(axis):
    """The lines above a panel."""
    return (axis.get_title() + axis.get_title(loc="left")).split("\n")


def drawn(figure, tmp_path):
    path = tmp_path / "picture.png"
    figure.savefig(path)
    assert path.stat().st_size > 5000
    return figure


def test_gates(tmp_path):
    figure = drawn(plot_gates(record()), tmp_path)
    for path in models.PATHS:
        axis = axes(figure, path)
        values = record()[path].by_head
        heads = values.shape[1]
        assert len(axis.patches) == heads
        for head, patch in enumerate(axis.patches):
            shares, edges, _ = patch.get_data()
            own = values[:, head].ravel()
            counts, _ = np.histogram(own, edges)
            np.testing.assert_allclose(shares, 100.0 * counts / own.size)
            assert len(shares) <= 80 and shares.sum() == pytest.approx(100.0)
    (image,) = axes(figure, "mean gate, in [0, 1]").images
    means = image.get_array()
    expected = record()["attention/gate"].by_head.mean(axis=(0, 2))
    np.testing.assert_allclose(means[0], expected, rtol=1e-5)
    assert means.mask[1, 1] and image.get_clim() == (0.0, 1.0)
    (image,) = axes(figure, "mean gate, unbounded").images
    swiglu = record()["swiglu"].values.mean()
    np.testing.assert_allclose(image.get_array(), [[swiglu]], rtol=1e-5)
    low, high = image.get_clim()
    assert low == -high < 0.0


def test_gates_of_statistics_and_of_some_layers(tmp_path):
    gate = layers.Gate(granularity="headwise", name="gate")
    statistics = gate_statistics(gate, np.ones((2, 3, 8, 4)))
    figure = drawn(plot_gates(statistics, "gate"), tmp_path)
    # One outline for more heads than there are colours.
    assert len(axes(figure, "gate").patches) == 1
    figure = plot_gates(record(), ["glu", "swiglu"])
    named = {title for axis in figure.axes for title in titles(axis)}
    assert {"glu", "swiglu"} <= named and "squeeze" not in named


def test_attention(tmp_path):
    figure = drawn(plot_attention(record(), call=0, sample=2), tmp_path)
    scores = record().scores["attention"].calls[0][2]
    for head in range(models.HEADS):
        image = axes(figure, f"head {head}").images[0]
        shown = image.get_array()
        hidden = scores[head].sum(-1) == 0.0
        assert 0 < hidden.sum() < models.LENGTH
        np.testing.assert_array_equal(shown.mask[:, 0], hidden)
        np.testing.assert_array_equal(shown[~hidden], scores[head][~hidden])
        assert image.get_clim() == (0.0, pytest.approx(scores.max()))
    assert "attention" in titles(axes(figure, "head 0"))
    assert "no key" in figure.axes[-1].get_ylabel()
    many = np.full((1, 10, 3, 4), 0.25)
    figure = drawn(plot_attention(many), tmp_path)
    assert len([a for a in figure.axes if a.images]) == 10
    assert figure.axes[-1].get_ylabel() == "probability"
    one = plot_attention(record().scores["attention"], tokens=list("abcde"))
    labels = axes(one, "head 0").get_yticklabels()
    assert [label.get_text() for label in labels] == list("abcde")


@pytest.mark.parametrize("kind", ["surface", "map"])
def test_curvature(tmp_path, kind):
    bounds = ((0.3, 2.8), (0.0, 3.0))
    figure = plot_curvature(surfaces.torus(), bounds, 7, kind=kind, limit=0.1)
    drawn(figure, tmp_path)
    if kind == "map":
        shown = figure.axes[0].images[0].get_array()
        theta, phi = (np.linspace(*b, 7) for b in bounds)
        points = np.stack(np.meshgrid(theta, phi, indexing="ij"), -1)
        expected = geometry.gaussian_curvature(
            surfaces.torus(), points.astype("float32")
        )
        expected = ops.convert_to_numpy(expected)
        np.testing.assert_allclose(shown.T, expected, rtol=1e-4, atol=1e-5)
        assert figure.axes[0].images[0].get_clim() == (-0.1, 0.1)
    else:
        assert figure.axes[0].name == "3d"


def test_curvature_of_many_features_and_of_none(tmp_path):
    layer = layers.GLU(5)
    figure = plot_curvature(layer, ((-1, 1), (-1, 1)), resolution=5)
    drawn(figure, tmp_path)
    assert "of 5" in figure.axes[0].get_title()

    def line(x):
        return ops.concatenate([x[:, :1], x[:, :1]], axis=-1)

    drawn(plot_curvature(line, ((-1, 1), (-1, 1)), resolution=5), tmp_path)


def test_names_are_shortened():
    assert shortened(["a/b/c", "a/b/d"]) == ("a/b", ["c", "d"])
    assert shortened(["a/b", "a/b/c"]) == ("a", ["b", "b/c"])
    assert shortened(["a/b"]) == ("", ["a/b"])
    assert shortened(["a", "b"]) == ("", ["a", "b"])


@pytest.mark.parametrize(
    "draw, message",
    [
        (lambda: plot_gates({"gate": 1}), "Received: dict"),
        (lambda: plot_gates(record(), "no such"), "no such"),
        (lambda: plot_gates(record(), []), r"paths=\[\]"),
        (lambda: plot_attention(record(), sample=3), "sample=3"),
        (lambda: plot_attention(record(), call=2), "call=2"),
        (lambda: plot_attention(record(), "glu"), r"paths=\['glu'\]"),
        (lambda: plot_attention(np.ones((2, 2))), r"\(2, 2\)"),
        (lambda: plot_attention(np.ones((1, 1, 2, 2)), "a"), "paths='a'"),
        (lambda: plot_attention(record(), tokens=["a"]), "1 tokens"),
        (lambda: plot_curvature(abs, ((0, 1),)), "bounds"),
        (lambda: plot_curvature(abs, ((0, 1),) * 3), "3 dimensions"),
        (lambda: plot_curvature(abs, ((0, 1),) * 2, 1), "resolution=1"),
        (lambda: plot_curvature(abs, ((0, 1),) * 2, kind="disc"), "disc"),
        (lambda: plot_curvature(abs, ((0, 1),) * 2, limit=0.0), "limit=0.0"),
    ],
)
def test_bad_arguments(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()


def test_a_record_without_scores():
    layer = layers.GLU(2)
    with record_gates(layer) as made:
        layer(np.ones((2, 3)))
    with pytest.raises(ValueError, match="scores=True"):
        plot_attention(made)


def test_pictures_leave_matplotlib_alone():
    import matplotlib.pyplot

    before = matplotlib.pyplot.get_fignums()
    plot_gates(record())
    assert matplotlib.pyplot.get_fignums() == before
