"""Exports a model and returns a function that runs the artefact.

Each exporter takes a `SideBySide` and a folder; what it returns maps a list of
arrays to a list of arrays.
"""

import keras
import numpy as np


def saved_model(parallel, folder):
    import tensorflow as tf

    options = {}
    if keras.config.backend() == "jax":
        # By default no two inputs share a size but the batch.
        shapes = [_polymorphic(spec) for spec in parallel.specs]
        options["jax2tf_kwargs"] = {"polymorphic_shapes": [shapes]}
    parallel.model.export(folder / "saved_model", verbose=False, **options)
    # Its weights live as long as the object.
    loaded = tf.saved_model.load(folder / "saved_model")
    return lambda arrays: [np.array(x) for x in loaded.serve(arrays)]


def _polymorphic(spec):
    sizes = (
        f"size_{size}" if unknown is None else str(size)
        for unknown, size in zip(spec.shape, spec.example)
    )
    return f"({', '.join(sizes)})"


def onnx(parallel, folder):
    path = folder / "model.onnx"
    parallel.model.export(path, format="onnx", verbose=False)
    return _onnx_session(path)


def onnx_of_fixed_sizes(parallel, folder):
    path = folder / "model.onnx"
    parallel.model.export(
        path, format="onnx", verbose=False, input_signature=_examples(parallel)
    )
    return _onnx_session(path)


def onnx_of_program(parallel, folder):
    import torch

    program = _torch_program(parallel, folder)
    path = folder / "model.onnx"
    torch.onnx.export(program, f=path, verbose=False)
    return _onnx_session(path)


def _onnx_session(path):
    import onnxruntime

    session = onnxruntime.InferenceSession(path)
    names = [x.name for x in session.get_inputs()]
    return lambda arrays: session.run(None, dict(zip(names, arrays)))


def openvino(parallel, folder):
    import openvino

    path = str(folder / "model.xml")
    parallel.model.export(path, format="openvino", verbose=False)
    # Faster and less precise is what it takes by default on some processors.
    precise = {"INFERENCE_PRECISION_HINT": "f32"}
    compiled = openvino.Core().compile_model(path, "CPU", precise)
    order = range(len(parallel.branches))
    if keras.config.backend() == "tensorflow":
        # By name, so 10 before 2.
        order = sorted(order, key=str)
    places = np.argsort(order)

    def run(arrays):
        outputs = compiled(arrays).to_tuple()
        return [np.array(outputs[place]) for place in places]

    return run


def litert(parallel, folder):
    from ai_edge_litert.interpreter import Interpreter

    path = str(folder / "model.tflite")
    parallel.model.export(
        path,
        format="litert",
        verbose=False,
        input_signature=_examples(parallel),
    )
    interpreter = Interpreter(path)
    runner = interpreter.get_signature_runner()
    names = _in_order(runner.get_input_details())
    results = _in_order(runner.get_output_details())

    def run(arrays):
        outputs = runner(**dict(zip(names, arrays)))
        return [outputs[name] for name in results]

    return run


def torch_program(parallel, folder):
    import torch

    module = _torch_program(parallel, folder).module()

    def run(arrays):
        outputs = module([torch.from_numpy(x) for x in arrays])
        return [x.detach().numpy() for x in outputs]

    return run


def _torch_program(parallel, folder):
    import torch

    path = folder / "model.pt2"
    if not path.exists():
        sizes = {}
        dynamic = [
            {
                axis: sizes.setdefault(size, torch.export.Dim(f"size_{size}"))
                for axis, size in enumerate(spec.example)
                if spec.shape[axis] is None
            }
            for spec in parallel.specs
        ]
        parallel.model.export(
            path,
            format="torch",
            verbose=False,
            input_signature=_examples(parallel),
            dynamic_shapes=[(dynamic,)],
        )
    return torch.export.load(path)


def _examples(parallel):
    """A signature of known sizes."""
    return [
        [
            keras.InputSpec(shape=spec.example, dtype=spec.dtype)
            for spec in parallel.specs
        ]
    ]


def _in_order(names):
    """By their numbers, as in `output_10`."""
    return sorted(names, key=lambda name: int(name.rpartition("_")[2]))
