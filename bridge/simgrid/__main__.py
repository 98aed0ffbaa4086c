"""``python3 -m bridge.simgrid``: the command line of the embedded platform model."""

import sys
from pathlib import Path

if not __package__:  # started by path: this folder must not shadow modules of the standard library
    _HERE = Path(__file__).resolve().parent
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != _HERE]
    # Last, since this may be the site-packages of another interpreter, whose pyzmq is not for this one.
    sys.path.append(str(_HERE.parent.parent))

from bridge.simgrid import options, outputs, simulation
from bridge.simgrid.errors import ModelError
from bridge.simgrid.supervise import supervised


def main(argv: list[str]) -> int:
    """Run one simulation; return the exit status."""
    try:
        chosen = options.parse(argv, f"bridge simgrid, behaves like Batsim {outputs.BATSIM_VERSION}")
    except ModelError as error:
        return _complain(error)
    except SystemExit as stop:
        return int(stop.code or 0)
    return supervised(lambda: _run(chosen), chosen.platform, keep_log=bool(chosen.simgrid_log))


def _run(chosen: options.Options) -> int:
    try:
        return simulation.run(chosen)
    except ModelError as error:
        return _complain(error)


def _complain(error: ModelError) -> int:
    options.say(f"bridge simgrid: error: {error}")
    return error.status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
