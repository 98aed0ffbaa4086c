"""Quantiles of Student's t, and Kendall's τ-b with its p-value: what intervals and rankings need.

SciPy has both, at 140 MB. Tests compare these with SciPy's.
"""

import math
from statistics import NormalDist

from bridge.base.arrays import Floats

#: Rankings of so many are tested exactly, if no two are equal; larger ones by the normal approximation.
_EXACT = 33


def t_quantile(freedom: float, probability: float) -> float:
    """Return the quantile of Student's t, for a probability above ½; of the normal one for infinity."""
    if math.isinf(freedom):
        return NormalDist().inv_cdf(probability)
    tail = 2 * (1 - probability)
    low, high = 0.0, 1.0
    while _t_tails(high, freedom) > tail:
        low, high = high, 2 * high
    while (middle := (low + high) / 2) not in {low, high}:
        if _t_tails(middle, freedom) > tail:
            low = middle
        else:
            high = middle
    return high


def kendall(values: Floats, others: Floats) -> tuple[float, float]:
    """Return τ-b of two rankings [n] and the p-value of both sides; NaN where one ranking is all ties."""
    n, x, y = len(values), values.tolist(), others.tolist()
    pairs = [(i, j) for i in range(n) for j in range(i)]
    agreement = sum(_sign(x[i] - x[j]) * _sign(y[i] - y[j]) for i, j in pairs)
    sizes = [_tie_sizes(values), _tie_sizes(others)]
    untied = [len(pairs) - sum(t * (t - 1) // 2 for t in ties) for ties in sizes]
    if not all(untied):
        return math.nan, math.nan
    tau = max(-1.0, min(1.0, agreement / math.sqrt(untied[0]) / math.sqrt(untied[1])))
    if untied == [len(pairs)] * 2 and (n <= _EXACT or min(_discordant(n, agreement), len(pairs)) <= 1):
        return tau, _exact_p(n, _discordant(n, agreement))
    return tau, _normal_p(n, agreement, *sizes)


def _discordant(n: int, agreement: int) -> int:
    """Return the smaller of the numbers of pairs in equal and in different order."""
    return (n * (n - 1) // 2 - abs(agreement)) // 2


def _exact_p(n: int, discordant: int) -> float:
    """Return the probability of as few discordant pairs, or of as many, among all permutations of n."""
    counts = [1]  # permutations by their number of inversions
    for k in range(2, n + 1):
        longer = [0] * (len(counts) + k - 1)
        for inversions, count in enumerate(counts):
            for extra in range(k):
                longer[inversions + extra] += count
        counts = longer
    if 2 * discordant == n * (n - 1) // 2:
        return 1.0
    return min(1.0, 2 * sum(counts[: discordant + 1]) / math.factorial(n))


def _normal_p(n: int, agreement: int, ties: list[int], others: list[int]) -> float:
    """Return the p-value by the normal approximation, corrected for ties (Kendall 1945)."""
    m = n * (n - 1)
    two = sum(t * (t - 1) for t in ties) * sum(t * (t - 1) for t in others)
    three = sum(t * (t - 1) * (t - 2) for t in ties) * sum(t * (t - 1) * (t - 2) for t in others)
    fives = sum(t * (t - 1) * (2 * t + 5) for t in ties) + sum(t * (t - 1) * (2 * t + 5) for t in others)
    variance = (m * (2 * n + 5) - fives) / 18 + two / (2 * m)
    if n > 2:
        variance += three / (9 * m * (n - 2))
    return math.erfc(abs(agreement) / math.sqrt(variance) / math.sqrt(2))


def _tie_sizes(values: Floats) -> list[int]:
    counts: dict[float, int] = {}
    for value in values.tolist():
        counts[value] = counts.get(value, 0) + 1
    return list(counts.values())


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _t_tails(t: float, freedom: float) -> float:
    """Return the probability of |T| > t: the regularised incomplete beta function at ν / (ν + t²)."""
    x = freedom / (freedom + t * t)
    return _regularised_beta(x, freedom / 2, 0.5)


def _regularised_beta(x: float, a: float, b: float) -> float:
    """Return I_x(a, b) by its continued fraction (Abramowitz & Stegun 26.5.8, Lentz's way)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _regularised_beta(1 - x, b, a)
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    tiny = 1e-300
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1) or tiny)
    value = d
    for m in range(1, 10_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        before = value
        for step in (even, odd):
            d = 1 / (1 + step * d or tiny)
            c = 1 + step / c or tiny
            value *= c * d
        if abs(value - before) <= 1e-16 * abs(value):
            break
    return math.exp(scale) * value / a
