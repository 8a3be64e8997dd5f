"""Which layers to show, and under which names."""


def chosen_paths(paths, there):
    """The paths to show as a list, all of `there` by default.

    Args:
        paths: a path, a list of them, or `None`.
        there: mapping from all paths.
    """
    if isinstance(paths, str):
        paths = [paths]
    chosen = list(there if paths is None else paths)
    unknown = [path for path in chosen if path not in there]
    if unknown or not chosen:
        raise ValueError(
            f"`paths` must be among {', '.join(there) or 'those recorded'}. "
            f"Received: paths={paths!r}"
        )
    return chosen


def shortened(paths):
    """What all paths begin with, and the rest of each."""
    parts = [path.split("/") for path in paths]
    shared = 0
    while all(len(part) > shared + 1 for part in parts) and (
        len({part[shared] for part in parts}) == 1
    ):
        shared += 1
    # A single path loses nothing.
    shared = shared if len(paths) > 1 else 0
    common = "/".join(parts[0][:shared])
    return common, ["/".join(part[shared:]) for part in parts]
