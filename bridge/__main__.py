"""The command `bridge`, also as ``python -m bridge``: from its first moment on, Ctrl-C ends it in a line."""

import signal
import sys


def main() -> int:
    """Run the command line and return its exit status."""
    try:
        from bridge.cli.main import main as run

        return run()
    except KeyboardInterrupt:  # while modules were loaded
        sys.stderr.write("bridge: interrupted\n")
        return 130
    finally:
        # What is left is Python's own end, which would show a traceback.
        signal.signal(signal.SIGINT, signal.SIG_IGN)


if __name__ == "__main__":
    sys.exit(main())
