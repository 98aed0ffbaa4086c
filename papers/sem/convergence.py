"""SEM's Figure 8: after how many episodes the agents do no better on the validation sequences."""

from papers import curves

#: Episodes after which the paper's agents have converged (Section 5.1).
PUBLISHED = {"sem-theta": {"DRAS": 86, "SEM": 60}, "sem-datastar": {"DRAS": 74, "SEM": 53}}
#: How near an agent's best it has to come, of it.
NEAR = 0.05


def said(table: str) -> list[str]:
    """Return a sentence per row: the first validation near its best one, of the mean over seeds."""
    text = []
    for (row, log), found in curves.read(table).items():
        seen = curves.together(found, "validated")["mean"]
        near = seen.index[seen <= (1 + NEAR) * seen.min()][0]
        published = PUBLISHED[table][row]
        text.append(
            f"{row}, {log} ({curves.seeds_of(found)} seeds): within {100 * NEAR:g} % of its best "
            f"({seen.min():.2f} of the base's wait) first at episode {near}, "
            f"then up to {seen.loc[near:].max():.2f}, validated every {seen.index[1] - seen.index[0]}; "
            f"published: converged after {published}."
        )
    return text
