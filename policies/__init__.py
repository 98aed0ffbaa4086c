"""Learned policies, one file per paper or family; `bridge` finds them through entry points."""
