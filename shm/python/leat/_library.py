"""libleat, found and declared: the structures of leat.h and the prototypes of its functions, nothing else.

Two handles of one library: `quick` calls keep the interpreter lock, because they never block and because the lock is then
what serialises threads, as leat.h's thread rule asks; `blocking` calls give it up (connecting alone).
"""

from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, Structure
from ctypes import c_char, c_char_p, c_double, c_float, c_int, c_int32, c_int64, c_size_t, c_uint8, c_uint32, c_uint64, c_void_p
from pathlib import Path

ABI_VERSION = 6
MAX_PLANES = 3
MAX_TENSORS = 8
MAX_TENSOR_RANK = 8


class TensorShape(Structure):
    _fields_ = [("dtype", c_uint32), ("rank", c_uint32), ("dims", c_uint32 * MAX_TENSOR_RANK)]


class ConnectOptions(Structure):
    _fields_ = [
        ("socket", c_char_p),
        ("name", c_char_p),
        ("timeout_ns", c_int64),
        ("wait", c_uint32),
        ("reserved", c_uint32),
    ]


class StreamOptions(Structure):
    _fields_ = [
        ("application", c_char_p),
        ("format", c_uint32),
        ("width", c_uint32),
        ("height", c_uint32),
        ("strides", c_uint32 * MAX_PLANES),
        ("depth", c_uint32),
        ("slots", c_uint32),
        ("overload", c_uint32),
        ("priority", c_uint32),
        ("slo_ns", c_int64),
        ("max_age_ns", c_int64),
        ("period_ns", c_int64),
        ("memory", c_uint32),
        ("codec", c_uint32),
        ("tensors", POINTER(TensorShape)),
        ("tensor_count", c_uint32),
        ("sla_drop_ppm", c_uint32),
        ("task_group", c_uint32),
        ("task_weight", c_uint32),
        ("local_drop_ppm", c_uint32),
        ("waits_for_grants", c_uint32),
        ("name", c_char_p),
        ("color_range", c_uint32),
        ("color_matrix", c_uint32),
    ]


class Frame(Structure):
    _fields_ = [
        ("stream", c_void_p),
        ("slot", c_uint32),
        ("generation", c_uint32),
        ("format", c_uint32),
        ("width", c_uint32),
        ("height", c_uint32),
        ("plane_count", c_uint32),
        ("planes", c_void_p * MAX_PLANES),
        ("strides", c_uint32 * MAX_PLANES),
        ("rows", c_uint32 * MAX_PLANES),
        ("row_bytes", c_uint32 * MAX_PLANES),
        ("bytes", c_uint64),
        ("tensor_count", c_uint32),
        ("reserved", c_uint32),
        ("tensors", c_void_p * MAX_TENSORS),
        ("tensor_bytes", c_uint64 * MAX_TENSORS),
        ("color_range", c_uint32),
        ("color_matrix", c_uint32),
    ]


class SubmitOptions(Structure):
    _fields_ = [
        ("capture_ns", c_int64),
        ("deadline_ns", c_int64),
        ("cookie", c_uint64),
        ("key", c_uint32),
        ("items", c_uint32),
        ("flags", c_uint32),
        ("bytes", c_uint32),
        ("color_range", c_uint32),
        ("color_matrix", c_uint32),
    ]


class Answer(Structure):
    _fields_ = [
        ("stream", c_void_p),
        ("ticket", c_uint64),
        ("cookie", c_uint64),
        ("outcome", c_uint8),
        ("reason", c_uint8),
        ("flags", c_uint8),
        ("reserved", c_uint8),
        ("slot", c_uint32),
        ("generation", c_uint32),
        ("where", c_uint32),
        ("capture_ns", c_int64),
        ("deadline_ns", c_int64),
        ("answered_ns", c_int64),
        ("result", c_void_p),
        ("result_bytes", c_uint64),
    ]


class TrackIdsOptions(Structure):
    _fields_ = [
        ("min_score", c_float),
        ("high_score", c_float),
        ("new_score", c_float),
        ("class_count", c_uint32),
        ("classes", POINTER(c_int32)),
        ("lost_ns", c_int64),
        ("any_class", c_uint32),
        ("reserved", c_uint32),
    ]


# In the order of leat/certainty.hpp.
CERTAINTY_TERMS = (
    "lost",
    "outliers",
    "spread",
    "wander",
    "most_wander",
    "growth",
    "path",
    "border",
    "turns",
    "overlap",
    "overlap_soon",
    "overlap_sum",
    "age",
    "age_small",
)


class Certainty(Structure):
    _fields_ = [("tracker", c_char * 16), ("asks", c_uint32), ("weight", c_float * len(CERTAINTY_TERMS))]


SUBMIT_MORE, SUBMIT_GAP, SUBMIT_DAMAGED = 1, 2, 4
ANSWER_DAMAGED = 1
COLOR_RANGES = {"unspecified": 0, "limited": 1, "full": 2}
COLOR_MATRICES = {"unspecified": 0, "bt601": 1, "bt709": 2, "bt2020": 3}
SLOT_BITSTREAM = 2
CODECS = {"h264": 1, "hevc": 2, "av1": 3, "jpeg": 4}
FORMATS = {"nv12": 1, "i420": 2, "rgb24": 3, "bgr24": 4, "gray8": 5, "tensors": 6}
OVERLOADS = {"fifo": 0, "latest": 1, "latest_per_key": 2, "never_drop": 3}
# leat_dtype: the index is its value. NumPy has no bfloat16: its bits are given as uint16.
DTYPES = ("f4", "f2", "u1", "i8", "i4", "i1", "u2", "i2", "u4", "u8", "f8", "?", "u2")
PRIORITIES = {"background": 0, "normal": 1, "high": 2, "protected": 3}

_PROTOTYPES = {
    "leat_abi_version": (c_uint32, []),
    "leat_error_name": (c_char_p, [c_int]),
    "leat_error_text": (c_char_p, [c_int]),
    "leat_last_error": (c_char_p, []),
    "leat_outcome_name": (c_char_p, [c_uint8]),
    "leat_reason_name": (c_char_p, [c_uint8]),
    "leat_reason_text": (c_char_p, [c_uint8]),
    "leat_now_ns": (c_int64, []),
    "leat_default_socket": (c_char_p, []),
    "leat_connect": (c_int, [POINTER(ConnectOptions), POINTER(c_void_p)]),
    "leat_disconnect": (None, [c_void_p]),
    "leat_stream_options_init": (None, [POINTER(StreamOptions)]),
    "leat_open_stream": (c_int, [c_void_p, POINTER(StreamOptions), POINTER(c_void_p)]),
    "leat_close_stream": (c_int, [c_void_p]),
    "leat_stream_slots": (c_uint32, [c_void_p]),
    "leat_stream_slo_ns": (c_int64, [c_void_p]),
    "leat_class_name": (c_char_p, [c_void_p, c_uint32, c_int32]),
    "leat_acquire": (c_int, [c_void_p, POINTER(Frame)]),
    "leat_abandon": (None, [POINTER(Frame)]),
    "leat_submit": (c_int, [POINTER(Frame), POINTER(SubmitOptions), POINTER(c_uint64)]),
    "leat_flush": (c_int, [c_void_p]),
    "leat_cancel": (c_int, [c_void_p, c_uint64]),
    "leat_wanted": (c_int, [c_void_p, c_int64]),
    "leat_wait_wanted": (c_int, [c_void_p, c_int64, c_int64]),
    "leat_should_submit_expecting": (c_int, [c_void_p, c_int64, c_double]),
    "leat_observe_expecting": (c_int, [c_void_p, c_uint32, c_double, c_double]),
    "leat_next_answer": (c_int, [c_void_p, c_int64, POINTER(Answer)]),
    "leat_answer_frame": (c_int, [POINTER(Answer), POINTER(Frame)]),
    "leat_release": (None, [POINTER(Answer)]),
    "leat_dispatched_ns": (c_int64, [POINTER(Answer)]),
    "leat_answer_fd": (c_int, [c_void_p]),
    "leat_status": (c_int, [c_char_p, c_char_p, c_size_t, POINTER(c_size_t)]),
    "leat_read_certainty": (c_int, [c_char_p, POINTER(Certainty)]),
    "leat_certainty_expected": (c_double, [POINTER(Certainty), POINTER(c_float)]),
    "leat_track_ids_options_init": (None, [POINTER(TrackIdsOptions)]),
    "leat_track_ids_create": (c_int, [POINTER(TrackIdsOptions), POINTER(c_void_p)]),
    "leat_track_ids_destroy": (None, [c_void_p]),
    "leat_track_ids_update": (c_int, [c_void_p, c_int64, c_void_p, c_uint32, POINTER(c_uint64)]),
}


def _candidates() -> list[str]:
    """Where libleat may lie: named, beside this package, in the build or the prefix it belongs to, where the linker looks."""
    named = os.environ.get("LEAT_LIBRARY")
    if named:
        return [named]
    here = Path(__file__).resolve().parent
    found = [str(path) for path in sorted(here.glob("libleat.so*"))[:1]]
    if (built := here.parents[2] / "build" / "shm" / "libleat.so.0").exists():  # this is shm/python of the sources
        found.append(str(built))
    for prefix in here.parents:
        for folder in ("lib", "lib64", *(f"lib/{entry.name}" for entry in prefix.glob("lib/*-linux-gnu"))):
            path = prefix / folder / "libleat.so.0"
            if path.exists():
                found.append(str(path))
        if prefix.name != "dist-packages" and found:
            break
    return [*found, "libleat.so.0"]


def _load() -> tuple[str, ctypes.CDLL, ctypes.PyDLL]:
    tried = []
    for path in _candidates():
        try:
            blocking, quick = ctypes.CDLL(path), ctypes.PyDLL(path)
        except OSError as error:
            tried.append(str(error))
            continue
        for library in (blocking, quick):
            for name, (result, arguments) in _PROTOTYPES.items():
                function = getattr(library, name)
                function.restype, function.argtypes = result, arguments
        version = quick.leat_abi_version()
        if version != ABI_VERSION:
            raise ImportError(
                f"{path} has ABI version {version}, this package {ABI_VERSION}; install the same release of both"
            )
        return path, blocking, quick
    raise ImportError("libleat.so.0 was not found; install leat or name the file in LEAT_LIBRARY (" + "; ".join(tried) + ")")


_path, blocking, quick = _load()


def library_path() -> str:
    """The file of the client library in use."""
    return _path


def default_socket() -> str:
    """The socket used when none is named."""
    return quick.leat_default_socket().decode()


def _names(function) -> list[str]:
    names: list[str] = []
    while (name := function(len(names)).decode()) != "unknown":
        names.append(name)
    return names


ERROR_NAMES = _names(quick.leat_error_name)
OUTCOME_NAMES = _names(quick.leat_outcome_name)
REASON_NAMES = _names(quick.leat_reason_name)

