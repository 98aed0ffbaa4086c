"""Tables of `bridge fidelity` in a terminal of 80 columns."""

import io

from rich.console import Console

from bridge.report.fidelity_tables import fidelity

DISTANCE = {
    "log_mae": 1.0, "rank_correlation": -0.17, "within": {"60": 0.29, "600": 0.35, "3600": 1.0},
    "bias": 58.88, "wasserstein": 4477.2, "wasserstein_relative": 58.88, "jobs": 202870,
}  # fmt: skip
DOCUMENT = DISTANCE | {
    "workload": "log", "name": "fcfs+conservative", "recorded": {"wait.mean": 60.0}, "windows": None,
    "from": 0, "until": 1, "split": 0.5, "behind": {"policy": DISTANCE, "verdict": {}}, "null": DISTANCE,
    "textbook": DISTANCE | {"policy": "sjf+easy"}, "waiting": {"unexplained": None}, "disagreements": [],
    "groups": {"partition": {"a-long-partition": DISTANCE, "b": DISTANCE}},
}  # fmt: skip


def test_no_word_is_broken_in_80_columns() -> None:
    text = io.StringIO()
    for part in fidelity(DOCUMENT):
        Console(file=text, width=80).print(part)
    lines = text.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    row = next(line for line in lines if line.startswith("│ fcfs"))
    assert [cell.strip() for cell in row.strip("│").split("│")] == [
        "fcfs+conservative", "1.00", "-0.17", "29/35/100", "+5888 %", "74.62 min", "58.88",
    ]  # fmt: skip
    group = next(line for line in lines if line.startswith("│ a-long"))
    assert [cell.strip() for cell in group.strip("│").split("│")] == [
        "a-long-partition", "202,870", "1.00", "-0.17", "29/35/100", "+5888 %", "58.88",
    ]  # fmt: skip
