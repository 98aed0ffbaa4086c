"""A recurrent network that re-estimates running jobs: parameters and the series seen so far → total length.

RLSchert (Wang et al., Appl. Sci. 2021, Section 3.2, Figure 2): one network reads the series step by step,
another the input parameters, and layers that are fully connected join them. The paper gives no sizes; these
are ours. What it says after u steps follows from the parameters and the first u entries of the series alone.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from bridge.base.arrays import Floats, Ints
from bridge.base.errors import BridgeError
from bridge.config import Count, Natural, Positive, verify
from bridge.learn.checkpoint import load_weights_into, read_tensors, write_tensors

#: Remaining lengths that the network can believe, in steps.
_SHORTEST, _LONGEST = 0.05, 10_000.0
#: Batches that are drawn together and put side by side by length, so that little is computed for nothing.
_SIDE_BY_SIDE = 8


@dataclass(frozen=True)
class SeriesSettings:
    """How the network is made and trained.

    Attributes:
        hidden: numbers that the recurrent network keeps, and units of each other layer.
        epochs: passes over the jobs.
        batch: jobs of an update.
        learning_rate: of Adam; falls to zero along a cosine.
        seed: of weights and batches.
    """

    hidden: Count = 32
    epochs: Count = 30
    batch: Count = 64
    learning_rate: Positive = 5e-3
    seed: Natural = 0

    def __post_init__(self) -> None:
        verify(self, "recurrent predictor")


class SeriesModel(nn.Module):
    """The network: P parameters, and series of S numbers a step; `hidden`: see `SeriesSettings`."""

    parameter_scale: Tensor  # [2, P] mean and deviation, after `_squeezed`
    series_scale: Tensor  # [2, S]

    def __init__(self, parameters: int, series: int, hidden: int) -> None:
        super().__init__()
        self.sizes = {"parameters": parameters, "series": series, "hidden": hidden}
        self.register_buffer(
            "parameter_scale", torch.stack((torch.zeros(parameters), torch.ones(parameters)))
        )
        self.register_buffer("series_scale", torch.stack((torch.zeros(series), torch.ones(series))))
        self.reader = nn.GRU(series + 1, hidden, batch_first=True)
        self.start = nn.Parameter(torch.zeros(hidden))
        self.embed = nn.Sequential(nn.Linear(parameters, hidden), nn.ReLU(), nn.Linear(hidden, hidden))
        self.join = nn.Sequential(nn.Linear(2 * hidden + 1, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, parameters: Tensor, series: Tensor) -> Tensor:
        """Return total lengths [B, W + 1] steps, believed after 0, 1, … W steps.

        `parameters`: [B, P]; `series`: [B, W, S], NaN after what has been seen: what is believed there is of
        no use.
        """
        n, width, _ = series.shape
        embedded = self.embed((_squeezed(parameters) - self.parameter_scale[0]) / self.parameter_scale[1])
        ran = torch.arange(width + 1, dtype=embedded.dtype).log1p().expand(n, -1)[..., None] / 3.0
        inputs = torch.nan_to_num((series - self.series_scale[0]) / self.series_scale[1])
        first = self.start.expand(n, 1, -1)
        states = first
        if width:
            read, _ = self.reader(torch.cat((inputs, ran[:, 1:]), 2), first.transpose(0, 1).contiguous())
            states = torch.cat((first, read), 1)
        joined = torch.cat((states, embedded[:, None].expand(-1, width + 1, -1), ran), 2)
        # A network that knows nothing says e^2, a usual length, so that training need not climb there first.
        left = (self.join(joined)[..., 0] + 2.0).exp().clamp(_SHORTEST, _LONGEST)
        total: Tensor = torch.arange(width + 1, dtype=left.dtype) + left
        return total

    def totals(self, parameters: Floats, series: Floats) -> Floats:
        """Predict total lengths while jobs run: [n, W], believed after 0, 1, … W - 1 steps.

        `parameters`: [n, P]; `series`: [n, W, S] seen after 1, 2, … steps, NaN after what has been seen:
        there what was believed last stands. What the whole series says, which is not asked while a job of at
        most W steps runs, is left out.
        """
        _check(parameters, series, self.sizes["parameters"], self.sizes["series"])
        with torch.no_grad():
            predictions = self(_tensor(parameters), _tensor(series))[:, :-1].double().numpy()
        steps = _observed_steps(series)
        width = series.shape[1]
        return np.take_along_axis(predictions, np.minimum(np.arange(width), steps[:, None]), axis=1)

    def save(self, path: Path) -> None:
        write_tensors(path, self.state_dict(), {"predictor": json.dumps(self.sizes, separators=(",", ":"))})


def load(path: Path | str) -> SeriesModel:
    """Read a network that `SeriesModel.save` wrote; BridgeError: missing, damaged, or something else."""
    import json

    path = Path(path)
    tensors, meta = read_tensors(path)
    try:
        sizes = json.loads(meta["predictor"])
        if not all(type(sizes[name]) is int and 1 <= sizes[name] <= 4096 for name in sizes):
            raise ValueError
        model = SeriesModel(**sizes)
    except (KeyError, ValueError, TypeError, AttributeError):
        raise BridgeError("is no recurrent predictor", where=str(path)) from None
    load_weights_into(model, tensors, "", path)
    return model.eval()


def fit(
    parameters: Floats,
    series: Floats,
    length: Ints,
    settings: SeriesSettings | None = None,
    *,
    progress: Callable[[int, float], None] | None = None,
) -> SeriesModel:
    """Train a network on jobs that have ended; same input, same machine, same network, bit for bit.

    What is made small is the difference of logarithms of believed and true total length, after each step at
    which the job still ran; every job weighs the same. `parameters`: [n, P]; `series`: [n, W, S] seen after
    1, 2, … steps, NaN after the end; `length`: [n] true lengths, steps, 1 … W. `progress` is called after
    each epoch with its number and the mean error. BridgeError: shapes that do not fit, or a length outside
    1 … W.
    """
    settings = settings or SeriesSettings()
    _check(parameters, series, parameters.shape[-1], series.shape[-1])
    if len(length) != len(series) or len(length) == 0 or length.min() < 1 or length.max() > series.shape[1]:
        raise BridgeError("lengths must be 1 … as many steps as the series has", where="recurrent predictor")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        model = SeriesModel(parameters.shape[1], series.shape[2], settings.hidden)
        parameters_tensor, series_tensor, true = (
            _tensor(parameters),
            _tensor(series),
            torch.from_numpy(length),
        )
        _scale(model, parameters_tensor, series_tensor)
        adam = torch.optim.Adam(model.parameters(), settings.learning_rate)
        batches = -(-len(length) // settings.batch)
        cooling = torch.optim.lr_scheduler.CosineAnnealingLR(adam, settings.epochs * batches)
        for epoch in range(settings.epochs):
            total = 0.0
            for jobs in _batches(true, settings.batch):
                longest = int(true[jobs].max())
                believed = model(parameters_tensor[jobs], series_tensor[jobs, : longest - 1])
                error = _error(believed, true[jobs])
                adam.zero_grad()
                error.backward()  # type: ignore[no-untyped-call]
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                adam.step()
                cooling.step()
                total += float(error.detach()) * len(jobs)
            if progress is not None:
                progress(epoch + 1, total / len(length))
    return model.eval()


def predict_others(
    parameters: Floats,
    series: Floats,
    length: Ints,
    folds: Sequence[Ints],
    settings: SeriesSettings | None = None,
    *,
    progress: Callable[[int, float], None] | None = None,
) -> Floats:
    """Predict every job while it runs, by a network trained on the jobs of all other folds: [n, W].

    Each job is in exactly one of the `folds`; `progress` is called after each epoch of each fold, with the
    number of epochs and the mean error; the others as in `fit`.
    """
    settings = settings or SeriesSettings()
    predictions = np.empty(series.shape[:2])
    for k, fold in enumerate(folds):
        others = np.setdiff1d(np.arange(len(length)), fold)

        def report(epoch: int, error: float, before: int = k * settings.epochs) -> None:
            if progress is not None:
                progress(before + epoch, error)

        model = fit(parameters[others], series[others], length[others], settings, progress=report)
        predictions[fold] = model.totals(parameters[fold], series[fold])
    return predictions


def _error(believed: Tensor, true: Tensor) -> Tensor:
    """Return the mean over jobs of each job's mean error, over the steps before its end."""
    ran = torch.arange(believed.shape[1]) < true[:, None]
    errors = (believed.log() - true[:, None].to(believed.dtype).log()).abs()
    return ((errors * ran).sum(1) / true).mean()


def _batches(length: Tensor, size: int) -> list[Tensor]:
    """Return the jobs in random batches, each of jobs of similar length."""
    batches: list[Tensor] = []
    for some in torch.split(torch.randperm(len(length)), size * _SIDE_BY_SIDE):
        batches += torch.split(some[torch.argsort(length[some], stable=True)], size)
    return [batches[int(k)] for k in torch.randperm(len(batches))]


def _scale(model: SeriesModel, parameters: Tensor, series: Tensor) -> None:
    """Set mean and deviation of everything that the network reads to those of the jobs it learns from."""
    there = ~series.isnan().any(2)
    for buffer, values in (
        (model.parameter_scale, _squeezed(parameters)),
        (model.series_scale, series[there]),
    ):
        if len(values):
            deviation = values.std(0, correction=0)
            buffer.copy_(torch.stack((values.mean(0), torch.where(deviation > 1e-6, deviation, 1.0))))


def _squeezed(parameters: Tensor) -> Tensor:
    """Return parameters, of which some count in units and some in thousands, on a logarithmic scale."""
    return parameters.sign() * parameters.abs().log1p()


def _observed_steps(series: Floats) -> Ints:
    """Return how many steps have been seen of each series: [n]."""
    there = np.isfinite(series).all(axis=2)
    steps: Ints = np.logical_and.accumulate(there, axis=1).sum(axis=1)
    return steps


def _tensor(values: Floats) -> Tensor:
    return torch.from_numpy(np.asarray(values, np.float32))


def _check(parameters: Floats, series: Floats, p: int, s: int) -> None:
    wrong = parameters.ndim != 2 or series.ndim != 3 or len(parameters) != len(series)
    if wrong or parameters.shape[1] != p or series.shape[2] != s:
        raise BridgeError(
            f"parameters of shape {parameters.shape} and series of shape {series.shape},"
            f" not (n, {p}) and (n, steps, {s})",
            where="recurrent predictor",
        )
    if not np.isfinite(parameters).all() or np.isinf(series).any():
        raise BridgeError("a parameter or a value of a series is not finite", where="recurrent predictor")
