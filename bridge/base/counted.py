"""Numbers with their nouns, as in "1 job" and "3,000 jobs", and with what agrees with them: "1 job waits"."""


def counted(number: int, one: str, several: str = "") -> str:
    """Return a number and its noun, in the plural unless the number is 1.

    `several`: the plural, if it is more than an s at the end: of ``job waits`` it is ``jobs wait``.
    """
    return f"{number:,} {one if number == 1 else several or one + 's'}"
