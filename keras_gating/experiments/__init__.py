"""Experiments that put the claims of the package to the test.

Each one is a function `run(...)` that trains, measures and returns a
`results.Results`; printing (`console`), pictures (`plots`) and the command
line (`keras_gating.cli`) are apart from it. Beyond the package itself they
need scikit-learn and matplotlib: `pip install "keras-gating[experiments]"`.
"""
