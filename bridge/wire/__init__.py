"""What stands on the wire and in files alike: times, sets of hosts, JSON within limits.

Both sides of the socket use it, the decision process and the platform model. The model runs under an
interpreter that has nothing of ours but this source tree, so everything here, and the one error type in
:mod:`bridge.base.errors`, needs the standard library alone.
"""
