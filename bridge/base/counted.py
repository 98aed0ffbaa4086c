"""Numbers with their nouns, as in "1 job" and "3,000 jobs", and with what agrees with them: "1 job waits"."""


def counted(number: int, one: str, several: str = "") -> str:
    """Return a number and its noun, in the plural unless the number is 1.

    `several`: the plural, if it is more than an s at the end: of ``job waits`` it is ``jobs wait``.
    """
    return f"{number:,} {one if number == 1 else several or one + 's'}"


#: What the first two words of a text about several become in one about one.
_OF_ONE = {
    "jobs": "job",
    "have": "has",
    "were": "was",
    **{verb: f"{verb}s" for verb in ("ask", "depend", "follow", "name", "wait")},
}


def counted_text(number: int, text: str) -> str:
    """Return a number and a text about so many jobs, such as "jobs follow another job"."""
    first, second, *rest = text.split(" ", 2) if text.startswith("jobs ") and number == 1 else ("", "")
    if first:
        text = " ".join((_OF_ONE[first], _OF_ONE.get(second, second), *rest))
    return f"{number:,} {text}"
