"""SEM's Figure 8: after how many episodes the agents do no better on the validation sequences."""

from papers import curves

#: Episodes after which the paper's agents have converged (Section 5.1).
_THETA, _DATASTAR = {"DRAS": 86, "SEM": 60}, {"DRAS": 74, "SEM": 53}
PUBLISHED = {
    "sem-theta": _THETA,
    "sem-theta-unseen": _THETA,
    "sem-datastar": _DATASTAR,
    "sem-datastar-unseen": _DATASTAR,
}
#: How near an agent's best it has to come, of it.
NEAR = 0.05


def sentences(table: str) -> list[str]:
    """Return a sentence per row: the first validation near its best one, of the mean over seeds."""
    text = []
    for (row, log), agents in curves.read(table).items():
        validated = curves.together(agents, "validated")["mean"]
        near = validated.index[validated <= (1 + NEAR) * validated.min()][0]
        published = PUBLISHED[table][row]
        text.append(
            f"{row}, {log} ({curves.seeds_of(agents)} seeds): within {100 * NEAR:g} % of its best "
            f"({validated.min():.2f} of the base's wait) first at episode {near}, "
            f"then up to {validated.loc[near:].max():.2f}, "
            f"validated every {validated.index[1] - validated.index[0]}; "
            f"published: converged after {published}."
        )
    return text
