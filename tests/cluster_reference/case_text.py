"""A case as plain text: a Python literal, one line per node, partition and job, to be pasted into a test."""

import ast


def format_case(case):
    """Return the case as a Python literal that `parse_case` and Python read back."""
    lines = ["{"]
    for key, value in case.items():
        if isinstance(value, list) and value and key in ("nodes", "jobs", "calendar"):
            lines.append(f"    {key!r}: [")
            lines += [f"        {entry!r}," for entry in value]
            lines.append("    ],")
        elif isinstance(value, dict) and value:
            lines.append(f"    {key!r}: {{")
            lines += [f"        {name!r}: {entry!r}," for name, entry in value.items()]
            lines.append("    },")
        else:
            lines.append(f"    {key!r}: {value!r},")
    return "\n".join([*lines, "}"])


def parse_case(text):
    return ast.literal_eval(text)
