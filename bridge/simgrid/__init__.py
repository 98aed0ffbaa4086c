"""The embedded platform model: Batsim's side of the wire, on SimGrid's Python bindings.

It runs as its own process under whatever interpreter has the modules ``simgrid`` and ``zmq``, so everything
in this folder but :mod:`bridge.simgrid.interpreter` uses those two and the standard library only, and imports
nothing else of ``bridge``. Start it as ``python3 -m bridge.simgrid -p platform.xml -w workload.json -s
tcp://localhost:28000``.
"""
