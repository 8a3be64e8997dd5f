import numpy as np
import pytest

from keras_gating import diagnostics
from keras_gating.experiments import characters
from keras_gating.experiments import sinks
from keras_gating.experiments import sinks_model
from keras_gating.experiments import sinks_report
from keras_gating.experiments.characters import VOCABULARY
from keras_gating.experiments.sinks_model import ARMS
from keras_gating.experiments.sinks_model import PAIRS
from keras_gating.experiments.sinks_model import SinkAttention
from keras_gating.experiments.sinks_model import arms_by_name
from keras_gating.experiments.transformer import residual_streams
from tests.experiments.reporting import check_difference
from tests.experiments.reporting import check_mean
from tests.experiments.reporting import check_reports
from tests.experiments.reporting import compile_without_xla
from tests.utils import to_numpy

LENGTH = 12


@pytest.fixture(scope="module")
def results():
    """A run with two arms, a smaller model and shorter text."""
    with pytest.MonkeyPatch.context() as patch:
        compile_without_xla(patch)
        text = characters.Text(["calendar"], ["textwrap"])
        patch.setattr(sinks, "Text", lambda: text)
        patch.setattr(sinks, "VALIDATION_WINDOWS", 64)
        patch.setattr(sinks, "RECORDED_WINDOWS", 8)
        for module in (sinks, sinks_model):
            patch.setattr(module, "LENGTH", LENGTH)
            patch.setattr(module, "LAYERS", 1)
        yield sinks.run(seeds=2, quick=True, arms=["none", "sink"], steps=12)


def test_learned_sink_is_a_score_without_a_value():
    layer = SinkAttention(num_heads=2, key_dim=4)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 5, 8)).astype("float32")
    layer.build(x.shape, x.shape)
    layer.sink.assign([0.7, -1.2])
    projected = [
        to_numpy(dense(x))
        for dense in (layer.query_dense, layer.key_dense, layer.value_dense)
    ]
    query, key, value = (p.astype("float64") for p in projected)
    scores = np.einsum("btnd,bsnd->bnts", query, key) / 2.0
    exponentials = np.exp(scores) * np.tri(5)
    sums = exponentials.sum(-1, keepdims=True)
    sink = np.exp([0.7, -1.2])[:, None, None]
    context = np.einsum("bnts,bsnd->btnd", exponentials / (sums + sink), value)
    kernel = to_numpy(layer.output_dense.kernel)
    expected = np.einsum("btnd,nde->bte", context, kernel)
    with diagnostics.record_gates(layer, scores=True) as record:
        outputs = to_numpy(layer(x, x, use_causal_mask=True))
    np.testing.assert_allclose(outputs, expected, atol=1e-5)
    # Recorded: probabilities, and the share that the sink leaves them.
    (scores,) = record.scores.values()
    np.testing.assert_allclose(scores.calls[0], exponentials / sums, atol=1e-6)
    (gate,) = record.values()
    share = np.swapaxes(sums / (sums + sink), 1, 2)
    np.testing.assert_allclose(gate.calls[0], share, atol=1e-6)


def test_arms_have_the_gates_that_they_name():
    layers = {arm.name: arm.attention("a") for arm in ARMS}
    assert [name for name, x in layers.items() if not x.use_gate] == [
        "none",
        "sink",
    ]
    assert layers["headwise"].gate_granularity == "headwise"
    assert layers["constant"].gate_source == "constant"
    plain = {first for first, second in PAIRS if second == "none"}
    assert plain == set(layers) - {"none"}
    assert {("elementwise", "constant"), ("headwise", "constant")} < set(PAIRS)


def test_published_figures_are_those_of_the_paper():
    published = {arm.name: arm.published for arm in ARMS}
    shares = {k: v.share for k, v in published.items() if v is not None}
    assert shares == {
        "none": 0.467,
        "elementwise": 0.048,
        "headwise": 0.073,
        "constant": 0.364,
    }
    assert published["elementwise"].gate == 0.116
    assert published["sink"] is None


@pytest.mark.parametrize("skip, expected", [(0, 25 / 48), (2, 7 / 24)])
def test_uniform_share_is_that_of_uniform_attention(skip, expected):
    assert sinks.uniform_share(4, skip) == pytest.approx(expected)
    scores = np.tri(4) / np.arange(1, 5)[:, None]
    (share,) = diagnostics.attention_sink(scores[None, None], skip=skip)
    assert share == pytest.approx(expected)


def test_largest_is_that_of_the_residual_stream(monkeypatch):
    monkeypatch.setattr(sinks_model, "LENGTH", LENGTH)
    monkeypatch.setattr(sinks_model, "LAYERS", 1)
    model = sinks_model.build(arms_by_name(["headwise"])[0])
    windows = np.random.default_rng(0).integers(0, 90, (4, LENGTH))
    seen = sinks.look(model, windows)
    attended, final = residual_streams(model)(windows)
    # The second sum feeds the last normalization and the readout.
    logits = model.get_layer("readout")(model.get_layer("norm")(final))
    np.testing.assert_allclose(
        to_numpy(logits), to_numpy(model(windows)), atol=1e-5
    )
    peaks = [np.abs(to_numpy(x)).max() for x in (attended, final)]
    assert seen["largest"] == pytest.approx(max(peaks))
    assert seen["share"].shape == seen["late_share"].shape == (1, 4)
    assert seen["gate"] == pytest.approx([0.5])


def test_results_are_consistent(results, tmp_path):
    measured = results.measurements
    arms = measured["arms"]
    assert list(arms) == ["none", "sink"]
    # One number more for each head.
    assert arms["sink"]["parameters"] - arms["none"]["parameters"] == 4
    for arm in arms.values():
        for key in ("loss", "share", "late_share", "highest_head", "largest"):
            check_mean(arm[key])
        assert max(arm["loss"]["values"]) < np.log(VOCABULARY)
        assert len(set(arm["loss"]["values"])) == 2
        by_head = np.array(arm["late_share_by_head"])
        assert by_head.shape == (1, 4) and (np.diff(by_head) >= 0.0).all()
        assert by_head.mean() == pytest.approx(arm["late_share"]["estimate"])
        highest = arm["highest_head"]["estimate"]
        assert by_head.max() == pytest.approx(highest)
    assert arms["none"]["gate"] is None
    assert 0.5 < arms["sink"]["gate"]["estimate"] < 1.0
    assert measured["uniform"]["share"] == sinks.uniform_share(LENGTH, 1)
    for key, entries in (
        ("loss", measured["differences"]),
        ("late_share", measured["share_differences"]),
    ):
        (entry,) = entries
        check_difference(entry, arms["sink"][key], arms["none"][key])
    text = check_reports(results, tmp_path)
    assert "learned sink − no gate" in text and "0.467" in text


def test_a_null_result_is_said_and_a_sink_too(results):
    measured = results.measurements
    plain = {**measured["arms"]["none"]}
    for heads, expected in ((0.0, "there is no sink here"), (0.5, "50.0%")):
        plain["sink_heads"] = {"estimate": heads}
        changed = {**measured, "arms": {**measured["arms"], "none": plain}}
        seen = type(results)(**{**vars(results), "measurements": changed})
        assert expected in next(sinks_report.conclusions(seen))


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"seeds": 0}, "seeds=0"),
        ({"steps": 0}, "steps=0"),
        ({"arms": ["none", "softplus"]}, "softplus"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        sinks.run(**arguments)
