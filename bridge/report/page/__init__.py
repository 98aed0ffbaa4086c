"""One self-contained HTML page of runs, validations, evaluations and checkpoints."""

from bridge.report.page.document import page, write_page
from bridge.report.page.inputs import Material, read_inputs

__all__ = ["Material", "page", "read_inputs", "write_page"]
