"""What can be exported: the one list of cells, for the tests and the guide.

`make export-matrix` prints it as the table of docs/guides/export.md.
"""

import dataclasses

BACKENDS = {"tensorflow": "TensorFlow", "jax": "JAX", "torch": "PyTorch"}
# What makes it in `formats.py`, and its name in the table.
FORMATS = {
    "saved_model": "SavedModel",
    "onnx": "ONNX",
    "onnx_of_fixed_sizes": "ONNX, all sizes fixed",
    "openvino": "OpenVINO",
    "litert": "LiteRT, all sizes fixed",
    "torch_program": "`.pt2` of `torch.export`",
}
WORKS, FAILS, UNTRIED = "works", "fails upstream", "not tried"
NOT_OFFERED = "–"


@dataclasses.dataclass(frozen=True)
class Failure:
    """A branch that an otherwise working cell leaves out.

    Args:
        reason: what the guide says.
        plain: name of a plain Keras model in `plain.py` that fails alike, or
            empty where a test of its own shows what holds instead.
        error: part of the message.
    """

    reason: str
    plain: str
    error: str


@dataclasses.dataclass(frozen=True)
class Cell:
    """A format and the backend that exports it.

    Args:
        format: a key of `FORMATS`.
        backend: a key of `BACKENDS`.
        status: `WORKS`, `FAILS` (a plain `Dense` as well) or `UNTRIED`.
        note: what the guide says of the cell.
        always: whether its test is part of `make test`; the other cells are
            left to `make export-matrix`.
        packages: what a test has to import.
        without: a `Failure` for each branch that is left out.
        error: part of the message for the plain `Dense`.
    """

    format: str
    backend: str
    status: str = WORKS
    note: str = ""
    always: bool = False
    packages: tuple = ()
    without: dict = dataclasses.field(default_factory=dict)
    error: str = ""

    @property
    def id(self):
        return f"{self.format}-{self.backend}"

    @property
    def notes(self):
        reasons = [failure.reason for failure in self.without.values()]
        return [self.note, *reasons] if self.note else reasons


CELLS = [
    Cell("saved_model", "tensorflow", packages=("tensorflow",)),
    Cell(
        "saved_model",
        "jax",
        always=True,
        packages=("tensorflow",),
        without={
            "gated_attention_unit mask_b1t_causal": Failure(
                'Not `attention_activation="laplace"`: TensorFlow 2.21 does '
                "not read the error function of JAX 0.10.",
                "erf",
                "composite_v2",
            ),
        },
    ),
    Cell(
        "saved_model",
        "torch",
        FAILS,
        "Keras and torch 2.13 disagree about dynamic shapes.",
        error="Detected mismatch",
    ),
    Cell(
        "onnx",
        "tensorflow",
        packages=("tf2onnx", "onnxruntime"),
        without={
            "geglu": Failure(
                "Not the exact GELU, for which TensorFlow's converter has no "
                "operation: `GEGLU(approximate=True)` works.",
                "gelu",
                "Erfc",
            )
        },
    ),
    Cell(
        "onnx",
        "jax",
        UNTRIED,
        "It takes the package jax2onnx and some 30 others.",
    ),
    Cell(
        "onnx",
        "torch",
        FAILS,
        "With unknown sizes Keras takes torch's old converter: not even "
        "`LayerNormalization` works.",
        error="Failed to export a node",
    ),
    Cell(
        "onnx_of_fixed_sizes",
        "torch",
        packages=("onnxscript", "onnxruntime"),
    ),
    Cell("openvino", "tensorflow", packages=("openvino",)),
    Cell(
        "openvino",
        "jax",
        FAILS,
        "OpenVINO does not read what JAX exports.",
        packages=("openvino", "tensorflow"),
        error="XlaCallModule",
    ),
    Cell("openvino", "torch", always=True, packages=("openvino",)),
    Cell(
        "litert",
        "tensorflow",
        always=True,
        packages=("ai_edge_litert",),
        without={
            "gated_attention_unit mask_b1t_causal": Failure(
                'Not `attention_activation="laplace"`: LiteRT has no error '
                "function of its own.",
                "erf",
                "FlexErf",
            )
        },
    ),
    Cell(
        "litert",
        "torch",
        UNTRIED,
        "It takes the package litert-torch and some 30 others.",
    ),
    Cell(
        "torch_program",
        "torch",
        without={
            "gated_attention_unit_chunked causal": Failure(
                "The chunked `GatedAttentionUnit` has to have a length of "
                "several whole chunks.",
                "",
                "",
            )
        },
    ),
]


def table():
    """The cells as lines of Markdown, notes below."""
    cells = {(cell.format, cell.backend): cell for cell in CELLS}
    lines = [
        "| | " + " | ".join(BACKENDS.values()) + " |",
        "| --- |" + " --- |" * len(BACKENDS),
    ]
    notes = []
    for format, name in FORMATS.items():
        row = [name]
        for backend in BACKENDS:
            cell = cells.get((format, backend))
            if cell is None:
                row.append(NOT_OFFERED)
                continue
            marks = []
            for note in cell.notes:
                notes.append(note)
                marks.append(f"({len(notes)})")
            row.append(" ".join([cell.status, *marks]))
        lines.append("| " + " | ".join(row) + " |")
    lines.append("")
    lines += [f"{number}. {note}" for number, note in enumerate(notes, 1)]
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
