"""Numbers with their nouns, as in "1 job" and "3,000 jobs"."""


def counted(number: int, noun: str) -> str:
    """Return a number and its noun, in the plural unless the number is 1."""
    return f"{number:,} {noun}{'s' * (number != 1)}"
