"""What nobody has to open first: errors, files, plug-ins, compiled kernels and their cache, interrupts.

The platform model's interpreter has only the standard library: it imports `errors` and `jsontext` from here.
"""
