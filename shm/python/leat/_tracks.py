"""Identities of detections over the answers of one stream (leat/track_ids.h)."""

from __future__ import annotations

import ctypes
import weakref
from typing import TYPE_CHECKING, Iterable

import numpy as np

from leat import _library
from leat._errors import check
from leat._results import DETECTION

if TYPE_CHECKING:
    from leat._client import Answer


class TrackIds:
    """Which detection is which object, from answer to answer of one stream, by where the boxes are (ByteTrack).

        tracks = leat.TrackIds(min_score=0.2, classes=[0, 2])
        for answer in client.answers():
            ids = tracks.update(answer)        # uint64, one for each of answer.result.detections; 0: none

    What scores less than `min_score` has no identity; from `high_score` on a detection is sure, below it only continues
    what is known; from `new_score` on it may be something new. An object that is not seen is waited for `lost` seconds.
    `any_class`: an object may be of one class now and of another later. One thread at a time."""

    def __init__(
        self,
        *,
        min_score: float | None = None,
        high_score: float | None = None,
        new_score: float | None = None,
        classes: Iterable[int] = (),
        lost: float | None = None,
        any_class: bool = False,
    ) -> None:
        options = _library.TrackIdsOptions()
        _library.quick.leat_track_ids_options_init(options)
        for name, value in (("min_score", min_score), ("high_score", high_score), ("new_score", new_score)):
            if value is not None:
                setattr(options, name, value)
        if lost is not None:
            options.lost_ns = round(lost * 1e9)
        wanted = list(classes)
        array = (ctypes.c_int32 * len(wanted))(*wanted)
        options.class_count, options.classes = len(wanted), array
        options.any_class = any_class
        handle = ctypes.c_void_p()
        check(_library.quick.leat_track_ids_create(options, ctypes.byref(handle)))
        self._handle = handle
        weakref.finalize(self, _library.quick.leat_track_ids_destroy, handle)

    def update(self, answer: Answer, detections: np.ndarray | None = None) -> np.ndarray:
        """The identities of an answer's detections, or of these. An answer without a result (a dropped frame) says
        nothing about what is there, and changes nothing."""
        if detections is None:
            if answer.result is None:
                return np.zeros(0, np.uint64)
            detections = answer.result.detections
        return self.update_at(answer.capture_ns, detections)

    def update_at(self, capture_ns: int, detections: np.ndarray) -> np.ndarray:
        """The same for detections from anywhere: an array like `Result.detections`, and when their frame was taken."""
        found = np.ascontiguousarray(detections, DETECTION)
        ids = np.zeros(len(found), np.uint64)
        pointer = found.ctypes.data_as(ctypes.c_void_p)
        given = ids.ctypes.data_as(ctypes.POINTER(ctypes.c_uint64))
        check(_library.quick.leat_track_ids_update(self._handle, capture_ns, pointer, len(found), given))
        return ids
