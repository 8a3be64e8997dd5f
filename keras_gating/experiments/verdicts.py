"""What a run says of differences and claims, by Holm's p."""

# Of Holm's p.
LEVEL = 0.05
_KINDS = ("for", "against", "not shown")


def verdict(claim, cases, sign):
    """Sorts the cases of one claim.

    Args:
        claim: the claim in words.
        cases: `(difference, adjusted p or None)` by name.
        sign: 1 if the claim expects a positive difference, else -1.

    Returns:
        A dictionary: `claim`, `verdict` in words, and the names of the cases
        `"for"` it, `"against"` it, and `"not shown"` to be either.
    """
    groups: dict = {kind: [] for kind in _KINDS}
    for case, (difference, p) in cases.items():
        if p is None or p >= LEVEL:
            groups["not shown"].append(case)
        else:
            is_expected = difference * sign > 0.0
            groups["for" if is_expected else "against"].append(case)
    if not groups["for"]:
        word = "not supported"
    elif len(groups["for"]) == len(cases):
        word = "supported"
    else:
        word = "supported in part"
    return {"claim": claim, "verdict": word, **groups}


def mark(entry):
    """An arrow for a difference that Holm's p shows, a dot for any other.

    Args:
        entry: a dictionary with `estimate` and `adjusted_p`.
    """
    if entry["adjusted_p"] is None or entry["adjusted_p"] >= LEVEL:
        return "·"
    return "↑" if entry["estimate"] > 0.0 else "↓"


def print_verdicts(console, conclusions):
    """Prints a line for each claim.

    Args:
        console: a `rich.console.Console`.
        conclusions: what `verdict` returned, claim by claim.
    """
    for entry in conclusions:
        cases = "; ".join(
            f"{kind}: {', '.join(entry[kind])}"
            for kind in _KINDS
            if entry[kind]
        )
        console.print(
            f"• {entry['claim']}: {entry['verdict']} ({cases}).",
            highlight=False,
        )
