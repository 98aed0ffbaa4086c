"""Played cases beside the recorded ones: the document and the file of `bridge slurm case`."""

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bridge.worlds.fast.slurm.case import SlurmCase, read_case
from bridge.worlds.fast.slurm.comparing import SlurmAgreement, compare
from bridge.worlds.fast.slurm.own_clock import MEASURED, Lateness
from bridge.worlds.fast.slurm.playing import SlurmPlayer, Start


@dataclass(frozen=True)
class Played:
    """A case, what the protocol started, and how that agrees."""

    case: SlurmCase
    starts: list[Start]
    agreement: SlurmAgreement
    refused: dict[str, str]


def play_case(folder: Path, clock: str = "recorded", seed: int = 0, lateness: Lateness = MEASURED) -> Played:
    """Play the case of a folder; BridgeError names the place of what it cannot be."""
    case = read_case(folder)
    player = SlurmPlayer(case, clock=clock, seed=seed, lateness=lateness)
    starts = player.play()
    return Played(case, starts, compare(case, starts), player.refused)


def starts_csv(played: Iterable[Played]) -> str:
    """Return all starts as CSV, by case and time."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("case", "job", "episode", "start", "nodes"))
    for one in played:
        for start in one.starts:
            writer.writerow((one.case.name, start.job, start.episode, f"{start.start:.3f}", start.nodes))
    return text.getvalue()


def agreement_document(played: Iterable[Played]) -> list[dict[str, Any]]:
    """Return what `--json` prints."""
    return [
        {
            "case": one.case.name,
            "starts": one.agreement.starts,
            "within_tolerance": one.agreement.hits,
            "same_nodes": one.agreement.same_nodes,
            "never_started_there": len(one.agreement.extra),
            "misses": [
                {"job": job, "episode": episode, "recorded": real, "played": own}
                for job, episode, real, own in one.agreement.misses
            ],
            "refused": one.refused,
        }
        for one in played
    ]
