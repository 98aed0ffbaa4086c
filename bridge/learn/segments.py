"""Mean and maximum over each decision's rows in one pass: `torch.segment_reduce` to the bit, and faster."""

from typing import Any

import torch
from torch import Tensor

from bridge.base.arrays import Array
from bridge.base.jit import kernel


@kernel
def _gather(rows: Array, offsets: Array, pooled: Array) -> None:
    """Write the means and maxima of each decision's ``rows`` [N, F] to ``pooled`` [D, 2 F]."""
    width = rows.shape[1]
    for d in range(pooled.shape[0]):
        for f in range(width):
            pooled[d, f], pooled[d, width + f] = 0.0, -float("inf")
        for i in range(offsets[d], offsets[d + 1]):
            for f in range(width):
                x, largest = rows[i, f], pooled[d, width + f]
                pooled[d, f] += x
                pooled[d, width + f] = x if largest < x else largest
        for f in range(width):
            pooled[d, f] /= offsets[d + 1] - offsets[d]


@kernel
def _spread(rows: Array, offsets: Array, pooled: Array, back: Array, spread: Array) -> None:
    """Write the gradient of ``rows`` to ``spread`` [N, F]; ``back`` [D, 2 F] is that of `pooled`, used up."""
    width = rows.shape[1]
    for d in range(pooled.shape[0]):
        begin, end = offsets[d], offsets[d + 1]
        for f in range(width):
            largest, equal = pooled[d, width + f], 0
            for i in range(begin, end):
                equal += rows[i, f] == largest
            if back[d, width + f] > 0.0:  # PyTorch shares out what is positive
                back[d, width + f] /= max(equal, 1)
            back[d, f] /= end - begin
            back[d, width + f] += back[d, f]
            for i in range(begin, end):  # without a branch, which nobody could predict
                spread[i, f] = back[d, f + width * (rows[i, f] == largest)]


class _Pool(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, offsets: Tensor) -> Tensor:
        pooled = rows.new_empty(len(offsets) - 1, 2 * rows.shape[1])
        _gather(rows.detach().numpy(), offsets.numpy(), pooled.numpy())
        ctx.save_for_backward(rows, offsets, pooled)
        return pooled

    @staticmethod
    def backward(ctx: Any, back: Tensor) -> tuple[Tensor, None]:
        spread = torch.empty_like(ctx.saved_tensors[0])
        _spread(*(tensor.detach().numpy() for tensor in (*ctx.saved_tensors, back.clone(), spread)))
        return spread, None


def pool(rows: Tensor, offsets: Tensor) -> Tensor:
    """Return mean and maximum over each decision's rows [N, F] side by side, [D, 2 F]."""
    if rows.device.type == "cpu":
        return _Pool.apply(rows.contiguous(), offsets)  # type: ignore[no-untyped-call,no-any-return]
    both = (torch.segment_reduce(rows, how, lengths=offsets.diff(), axis=0) for how in ("mean", "max"))
    return torch.cat(list(both), 1)
