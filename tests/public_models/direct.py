"""One run of a model by ONNX Runtime's C API alone, through ctypes: nothing of Leat is between. Tensors are numpy arrays."""

import ctypes
import math

import numpy as np

# Places of the functions in OrtApi, to which versions only append.
_GET_ERROR_MESSAGE, _CREATE_ENV, _CREATE_SESSION, _RUN, _CREATE_OPTIONS, _THREADS = 2, 3, 7, 9, 10, 24
_INPUTS, _OUTPUTS, _INPUT_NAME, _OUTPUT_NAME = 30, 31, 36, 37
_WRAP, _DATA, _ELEMENT_TYPE, _RANK, _DIMENSIONS, _TYPE_AND_SHAPE, _MEMORY_INFO, _ALLOCATOR = 49, 51, 60, 61, 62, 65, 69, 78
_API_VERSION = 11
_TYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 6: np.int32, 7: np.int64, 10: np.float16, 11: np.float64}


class Model:
    """A session on one thread. run() takes one array a name and gives the outputs in the model's order."""

    def __init__(self, library: str, path: str) -> None:
        self.path = path
        ort = ctypes.CDLL(library)

        class Base(ctypes.Structure):
            _fields_ = [("api", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)), ("version", ctypes.c_void_p)]

        ort.OrtGetApiBase.restype = ctypes.POINTER(Base)
        self._table = ctypes.cast(ort.OrtGetApiBase().contents.api(_API_VERSION), ctypes.POINTER(ctypes.c_void_p))
        env, options = self._new(_CREATE_ENV, 3, b"direct"), self._new(_CREATE_OPTIONS)
        self._call(_THREADS, options, 1)
        self._session = self._new(_CREATE_SESSION, env, path.encode(), options)
        self._memory = self._new(_MEMORY_INFO, 1, 0)
        self.inputs = self._names(_INPUTS, _INPUT_NAME)
        self.outputs = self._names(_OUTPUTS, _OUTPUT_NAME)

    def run(self, **arrays: np.ndarray) -> list[np.ndarray]:
        held = [np.ascontiguousarray(arrays[name]) for name in self.inputs]
        values = (ctypes.c_void_p * len(held))()
        for i, array in enumerate(held):
            dims = (ctypes.c_int64 * array.ndim)(*array.shape)
            kind = next(k for k, t in _TYPES.items() if t == array.dtype.type)
            values[i] = self._new(
                _WRAP, self._memory, ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes), dims,
                ctypes.c_size_t(array.ndim), kind,
            ).value
        names = (ctypes.c_char_p * len(held))(*(n.encode() for n in self.inputs))
        wanted = (ctypes.c_char_p * len(self.outputs))(*(n.encode() for n in self.outputs))
        out = (ctypes.c_void_p * len(self.outputs))()
        self._call(_RUN, self._session, None, names, values, ctypes.c_size_t(len(held)), wanted, ctypes.c_size_t(len(out)), out)
        return [self._array(ctypes.c_void_p(v)) for v in out]

    def _array(self, value: ctypes.c_void_p) -> np.ndarray:
        info, rank, kind, data = self._new(_TYPE_AND_SHAPE, value), ctypes.c_size_t(), ctypes.c_int(), ctypes.c_void_p()
        self._call(_RANK, info, ctypes.byref(rank))
        dims = (ctypes.c_int64 * rank.value)()
        self._call(_DIMENSIONS, info, dims, rank)
        self._call(_ELEMENT_TYPE, info, ctypes.byref(kind))
        self._call(_DATA, value, ctypes.byref(data))
        dtype = np.dtype(_TYPES[kind.value])
        block = ctypes.string_at(data.value, math.prod(dims) * dtype.itemsize)
        return np.frombuffer(block, dtype).reshape(list(dims))

    def _names(self, count_of: int, name_of: int) -> list[str]:
        count, allocator, out = ctypes.c_size_t(), self._new(_ALLOCATOR), []
        self._call(count_of, self._session, ctypes.byref(count))
        for i in range(count.value):
            name = ctypes.c_char_p()
            self._call(name_of, self._session, ctypes.c_size_t(i), allocator, ctypes.byref(name))
            out.append(name.value.decode())
        return out

    def _new(self, function: int, *arguments) -> ctypes.c_void_p:
        made = ctypes.c_void_p()
        self._call(function, *arguments, ctypes.byref(made))
        return made

    def _call(self, function: int, *arguments) -> None:
        status = ctypes.CFUNCTYPE(ctypes.c_void_p)(self._table[function])
        status.argtypes = None
        said = status(*arguments)
        if said:
            message = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)(self._table[_GET_ERROR_MESSAGE])
            raise RuntimeError(message(said).decode())
