"""DLPack for read-only views: NumPy refuses to export them, though a consumer that only reads (a model, a drawing routine)
may have them without a copy. The capsule keeps the array alive until its consumer lets go.

Layout and life of the capsule: dmlc/dlpack, include/dlpack/dlpack.h, version 0.8 (unversioned capsules).
"""

from __future__ import annotations

import ctypes
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p, py_object

import numpy as np

CPU = (1, 0)
_KINDS = {"i": 0, "u": 1, "f": 2, "b": 6}


class _DLTensor(Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class _DLManagedTensor(Structure):
    pass


_Deleter = CFUNCTYPE(None, POINTER(_DLManagedTensor))
_DLManagedTensor._fields_ = [("tensor", _DLTensor), ("context", c_void_p), ("deleter", _Deleter)]
_NAME = b"dltensor"
_held: dict[int, tuple] = {}  # address of a managed tensor: what must outlive it


@_Deleter
def _delete(managed) -> None:
    _held.pop(ctypes.addressof(managed.contents), None)


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = py_object, [c_void_p, c_char_p, c_void_p]
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, [c_void_p, c_char_p]
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = c_void_p, [c_void_p, c_char_p]


@CFUNCTYPE(None, c_void_p)
def _destroy(capsule) -> None:
    if _is_valid(capsule, _NAME):  # nobody consumed it: a consumer renames it and calls the deleter itself
        _held.pop(_pointer(capsule, _NAME), None)


def capsule(array: np.ndarray):
    """A `dltensor` capsule over `array`'s memory. A consumer must not write where the array is read-only."""
    if array.dtype.kind not in _KINDS or not array.dtype.isnative:
        raise BufferError(f"DLPack has no type for {array.dtype}")
    managed = _DLManagedTensor()
    shape = (c_int64 * max(array.ndim, 1))(*array.shape)
    strides = (c_int64 * max(array.ndim, 1))(*(s // array.itemsize for s in array.strides))
    managed.tensor = _DLTensor(
        array.ctypes.data, *CPU, array.ndim, _KINDS[array.dtype.kind], array.itemsize * 8, 1, shape, strides, 0
    )
    managed.deleter = _delete
    address = ctypes.addressof(managed)
    _held[address] = (managed, shape, strides, array)
    return _new_capsule(address, _NAME, ctypes.cast(_destroy, c_void_p))


class View(np.ndarray):
    """An array whose DLPack export works although it is read-only."""

    def __dlpack__(self, *, stream=None):
        return capsule(self)

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU
