"""The embedded platform model: Batsim's side of the wire, on SimGrid's Python bindings.

It runs as its own process under whatever interpreter has the modules ``simgrid`` and ``zmq``, so everything
in this folder uses those two and the standard library only, and of the rest of ``bridge`` no more than
:mod:`bridge.wire` and :mod:`bridge.errors`. Start it as
``python3 -m bridge.simgrid -p platform.xml -w workload.json -s tcp://localhost:28000``.
"""
