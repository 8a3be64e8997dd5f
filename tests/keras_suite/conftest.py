"""The mark that Keras' own tests use."""


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "requires_trainable_backend: as in Keras; ours all train"
    )
