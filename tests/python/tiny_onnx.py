"""ONNX files of a few nodes, written byte by byte, so that tests need no library for it (field numbers: onnx.proto3)."""

from __future__ import annotations

import struct
from typing import Iterable

FLOAT, INT64 = 1, 7


def _varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes | str) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return _varint(field << 3 | 2) + _varint(len(raw)) + raw


def node(op: str, inputs: Iterable[str], outputs: Iterable[str], **attributes: int | list[int]) -> bytes:
    def attribute(name: str, value: int | list[int]) -> bytes:
        held = _number(3, value) + _number(20, 2) if isinstance(value, int) else b"".join(_number(8, n) for n in value) + _number(20, 7)
        return _bytes(5, _bytes(1, name) + held)

    return b"".join(_bytes(1, i) for i in inputs) + b"".join(_bytes(2, o) for o in outputs) + _bytes(4, op) + b"".join(attribute(k, v) for k, v in attributes.items())


def constant(name: str, shape: Iterable[int], values: Iterable[float]) -> bytes:
    """One of model()'s constants: int64 where all values are integers, else float."""
    values = list(values)
    whole = all(isinstance(v, int) for v in values)
    raw = struct.pack(f"<{len(values)}{'q' if whole else 'f'}", *values)
    return b"".join(_number(1, d) for d in shape) + _number(2, INT64 if whole else FLOAT) + _bytes(8, name) + _bytes(9, raw)


def value(name: str, element: int, shape: Iterable[int | str]) -> bytes:
    dims = b"".join(_bytes(1, _number(1, d) if isinstance(d, int) else _bytes(2, d)) for d in shape)
    return _bytes(1, name) + _bytes(2, _bytes(1, _number(1, element) + _bytes(2, dims)))


def model(nodes: Iterable[bytes], inputs: Iterable[bytes], outputs: Iterable[bytes], constants: Iterable[bytes] = ()) -> bytes:
    graph = b"".join(_bytes(1, n) for n in nodes) + _bytes(2, "tiny") + b"".join(_bytes(5, c) for c in constants)
    graph += b"".join(_bytes(11, i) for i in inputs) + b"".join(_bytes(12, o) for o in outputs)
    return _number(1, 8) + _bytes(7, graph) + _bytes(8, _bytes(1, "") + _number(2, 13))
