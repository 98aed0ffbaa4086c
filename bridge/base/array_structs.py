"""Named tuples of arrays that kernels take by one address.

Numba hands a named tuple over array by array, each in all its parts: for a scheduler's state three hundred
arguments, at every call that is not compiled into its caller, and for Python 7 µs an entry. A `Bundle` is a
pointer instead, to the arrays' addresses and lengths; the rest of an array is in its type.
"""

import hashlib
from typing import Any

from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.datamodel.registry import register_default
from numba.core.imputils import builtin_registry, impl_ret_borrowed
from numba.core.pythonapi import NativeValue, unbox
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.core.typing.typeof import typeof_impl

from bridge.base.arrays import WORD, Bundle


class BundleType(types.Type):
    """A `Bundle` in a kernel.

    Attributes:
        fields: name -> the array's type, and where its address stands among the words.
        words: how many there are.
        kinds: names of the class and of those that it inherits from.
        large: as of a `Bundle`.
    """

    def __init__(
        self, kinds: tuple[str, ...], arrays: tuple[tuple[str, Any], ...], *, large: bool = False
    ) -> None:
        self.kinds, self.large = kinds, large
        self.fields: dict[str, tuple[Any, int]] = {}
        self.words = 0
        for field, array in arrays:
            self.fields[field] = array, self.words
            self.words += 1 + array.ndim
        digest = hashlib.sha256(repr(arrays).encode()).hexdigest()  # thousands of lookups hash the name
        super().__init__(name=f"{kinds[0]}_{digest[:16]}")


@typeof_impl.register(Bundle)
def _type_of(value: Any, context: Any) -> BundleType:
    arrays = tuple(
        (name, typeof_impl(array, context)) for name, array in zip(value._fields, value, strict=True)
    )
    kinds = tuple(kind.__name__ for kind in type(value).__mro__)
    return BundleType(kinds, arrays, large=type(value).large)


@register_default(BundleType)
class _Model(models.OpaqueModel):
    def from_argument(self, builder: Any, value: Any) -> Any:
        """Say that the words can be read at any time, so that LLVM does so before a loop: 10 % in all."""
        if hasattr(value, "attributes"):
            value.attributes.dereferenceable, value.attributes.align = WORD * self.fe_type.words, WORD
            value.add_attribute("noalias")
        return super().from_argument(builder, value)


@unbox(BundleType)
def _unbox(_kind: BundleType, value: Any, context: Any) -> NativeValue:
    builder, python = context.builder, context.pyapi
    address = python.object_getattr_string(value, "address")
    failed = cgutils.is_null(builder, address)
    native = cgutils.alloca_once_value(builder, cgutils.voidptr_t(None))
    with builder.if_then(builder.not_(failed), likely=True):
        builder.store(builder.inttoptr(python.long_as_longlong(address), cgutils.voidptr_t), native)
        python.decref(address)
    return NativeValue(builder.load(native), is_error=failed)


@infer_getattr
class _Attributes(AttributeTemplate):
    key = BundleType

    def generic_resolve(self, kind: BundleType, name: str) -> Any:  # type: ignore[override]
        return kind.fields.get(name, (None,))[0]


@builtin_registry.lower_getattr_generic(BundleType)
def _get(context: Any, builder: Any, kind: BundleType, value: Any, name: str) -> Any:
    """Make the array of its address and its lengths, which never change."""
    from numba.np.arrayobj import get_itemsize, make_array, populate_array

    array, at = kind.fields[name]
    array_value = make_array(array)(context, builder)

    def word(k: int, pointer: Any) -> Any:
        place = builder.gep(builder.bitcast(value, cgutils.intp_t.as_pointer()), [cgutils.intp_t(at + k)])
        read = builder.load(builder.bitcast(place, pointer.as_pointer()))
        read.set_metadata("invariant.load", builder.module.add_metadata([]))
        return read

    shape = [word(1 + d, cgutils.intp_t) for d in range(array.ndim)]
    itemsize = context.get_constant(types.intp, get_itemsize(context, array))
    strides = [itemsize]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    data = word(0, array_value.data.type)
    populate_array(array_value, data, shape, strides, itemsize, None)
    return impl_ret_borrowed(context, builder, array, array_value._getvalue())
