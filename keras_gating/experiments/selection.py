"""Choosing arms, tasks and the like of an experiment by their names."""


def known_names(known, names, experiment, kind):
    """Returns `names` if all are known, all known ones by default.

    Args:
        known: the names there are, in their order.
        names: those wanted, or `None`.
        experiment: the experiment in words, for the message.
        kind: what the names are of: the argument's own name.
    """
    unknown = [name for name in names or () if name not in known]
    if unknown:
        raise ValueError(
            f"Unknown {kind} of the {experiment} experiment. Received: "
            f"{kind}={unknown}; expected some of {sorted(known)}"
        )
    return tuple(known if names is None else names)


def entries_by_name(entries, names, experiment, kind="arms"):
    """Returns the entries called `names`, all of them by default.

    Args:
        entries: objects with a `name`.
        names: see `known_names`.
        experiment: see `known_names`.
        kind: see `known_names`.
    """
    known = {entry.name: entry for entry in entries}
    names = known_names(known, names, experiment, kind)
    return tuple(known[name] for name in names)
