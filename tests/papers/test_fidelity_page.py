"""How near textbook rules come to the public logs stands on its page, as it was measured."""

import pytest

from bridge.report.folding import fold_tables
from papers import fidelity, inferred, store

#: Unexplained shares of all waiting, percent, as they were measured once by another program.
UNEXPLAINED = {"SDSC-SP2": 9, "CTC-SP2": 15, "HPC2N": 88, "DataStar": 56, "Curie": 67, "Theta": 23}


def test_the_page_is_what_the_data_say() -> None:
    assert (store.RESULTS / "fidelity.md").read_text(encoding="utf-8") == fold_tables(fidelity.page()), (
        "run `python -m papers.fidelity`"
    )
    assert tuple(fidelity.read_fidelity()) == fidelity.LOGS


@pytest.mark.parametrize(("log", "percent"), UNEXPLAINED.items())
def test_as_much_is_unexplained_as_was_measured(log: str, percent: float) -> None:
    waiting = fidelity.read_fidelity()[log]["waiting"]
    assert 100 * waiting["unexplained"] == pytest.approx(percent, abs=3)
    reasons = ("no_room", "partition_full", "reserved", "unexplained")
    assert sum(waiting[reason] for reason in reasons) == pytest.approx(1.0)


def test_wasserstein_is_never_below_the_bias() -> None:
    for document in fidelity.read_fidelity().values():
        for one in document["policies"].values():
            for part in ("whole", "behind"):
                assert one[part]["wasserstein_relative"] >= abs(one[part]["bias"]) - 1e-9


def test_lists_of_nodes_say_what_was_measured_once_by_another_program() -> None:
    """Pozidriv's large partition has 88 nodes: two others as a whole, parts of three more; one is apart."""
    lists = inferred.read_inferred()["pozidriv"]["lists"]
    values = {what: one["value"] for what, one in lists.items() if what.startswith("nodes ")}
    sizes = {"croutons": 33, "cornbread": 16, "black": 88, "brioche": 7, "chapti": 4, "barm": 1, "bannock": 6}
    shared = {
        "croutons and black": 30, "cornbread and black": 8, "black and brioche": 2, "black and chapti": 4,
        "black and bannock": 6,
    }  # fmt: skip
    expected = {f"nodes of partition {name}": n for name, n in sizes.items()}
    assert values == expected | {f"nodes that {pair} share": n for pair, n in shared.items()}
