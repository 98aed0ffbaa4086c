"""Dialects of the wire: how each version of Batsim spells what `bridge.batsim.events` says."""
