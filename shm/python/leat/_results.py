"""leat_result as NumPy sees it: structured views of the read-only block in the result slot (leat/result_types.h)."""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass
from typing import Callable, Iterator

import numpy as np

from leat import _library
from leat._dlpack import View

RESULT_VERSION = 2
LABEL = np.dtype([("head", "u4"), ("class_id", "i4"), ("score", "f4")])
DETECTION = np.dtype(
    [
        ("box", "f4", 4),
        ("score", "f4"),
        ("class_id", "i4"),
        ("label_count", "u4"),
        ("reserved", "u4"),
        ("labels", LABEL, 4),
    ]
)
CLASS = np.dtype([("class_id", "i4"), ("score", "f4")])
RESULT = np.dtype(
    [
        ("version", "u4"),
        ("kind", "u4"),
        ("detection_count", "u4"),
        ("detections_left_out", "u4"),
        ("class_count", "u4"),
        ("frame_width", "u4"),
        ("frame_height", "u4"),
        ("part_count", "u4"),
        ("checksum", "u8"),
        ("model_version", "u8"),
        ("flags", "u4"),
        ("reserved1", "u4", 3),
        ("classes", CLASS, 16),
        ("detections", DETECTION, 100),
    ]
)
KINDS = ("none", "detections", "classes", "checksum", "parts")

PARTS_OFFSET, PAYLOAD_OFFSET, MAX_PARTS = 8192, 9472, 16
PART = np.dtype(
    [
        ("kind", "u2"),
        ("module", "u2"),
        ("item", "u4"),
        ("dtype", "u4"),
        ("rank", "u4"),
        ("dims", "u4", 4),
        ("offset", "u8"),
        ("bytes", "u8"),
        ("name", "S32"),
    ]
)
BOX = np.dtype([("box", "f4", 4), ("score", "f4"), ("class_id", "i4"), ("reserved", "u4", 2)])
ORIENTED_BOX = np.dtype(
    [("cx", "f4"), ("cy", "f4"), ("width", "f4"), ("height", "f4"), ("angle", "f4"), ("score", "f4")]
    + [("class_id", "i4"), ("reserved", "u4")]
)
KEYPOINT = np.dtype([("x", "f4"), ("y", "f4"), ("score", "f4")])
MASK = np.dtype([("box", "f4", 4), ("width", "u4"), ("height", "u4"), ("offset", "u4"), ("bytes", "u4")])
TEXT = np.dtype([("quad", "f4", 8), ("score", "f4"), ("offset", "u4"), ("length", "u4"), ("reserved", "u4")])
PART_KINDS = ("none", "boxes", "oriented", "keypoints", "masks", "text", "classes", "embedding", "map", "tensor")
_ELEMENTS = {"boxes": BOX, "oriented": ORIENTED_BOX, "keypoints": KEYPOINT, "masks": MASK, "text": TEXT, "classes": CLASS}


@dataclass(frozen=True)
class Part:
    """One part of a result: what a module wrote behind the head. `array` is a read-only view in the result slot: values
    in the part's own type and shape for tensors, maps and embeddings, structured rows for everything else."""

    kind: str
    name: str
    module: int
    each: bool  # its first dimension goes over the detections
    array: np.ndarray
    payload: np.ndarray  # all bytes of the part, from the array's first

    @property
    def texts(self) -> list[str]:
        """The lines of a text part."""
        return [
            bytes(self.payload[int(t["offset"]) :][: int(t["length"])]).decode(errors="replace")
            for t in self.array.reshape(-1)
        ]

    @property
    def masks(self) -> list[np.ndarray]:
        """Of a masks part: one boolean grid (height, width) for each object; `array["box"]` says where it lies."""
        grids = []
        for m in self.array.reshape(-1):
            height, width = int(m["height"]), int(m["width"])
            rows = self.payload[int(m["offset"]) :][: height * ((width + 7) // 8)].reshape(height, -1)
            grids.append(np.unpackbits(rows, axis=1, bitorder="little")[:, :width].astype(bool))
        return grids


@dataclass(frozen=True)
class Label:
    """What a module behind the detector said of one detection."""

    head: int
    class_id: int
    name: str
    score: float


@dataclass(frozen=True)
class Detection:
    """One found object; the box is (x0, y0, x1, y1) in pixels of the frame, x1 and y1 exclusive."""

    box: tuple[float, float, float, float]
    score: float
    class_id: int
    name: str
    labels: tuple[Label, ...]


class Result:
    """What a frame's modules answered. The arrays are read-only views of the result slot and keep the answer alive;
    iterating gives detections as plain objects with their names."""

    def __init__(self, owner: object, class_name: Callable[[int, int], str | None], address: int, room: int) -> None:
        """`owner` (an Answer) keeps the slot; class_name(class_id, head) knows the application's names."""
        block = (ctypes.c_ubyte * room).from_address(address)
        block.owner = owner  # the slot is not given back while an array looks at it
        self._class_name = class_name
        self._bytes = np.frombuffer(block, np.uint8)
        self._bytes.flags.writeable = False
        self._head = self._bytes[: RESULT.itemsize].view(RESULT)

    @property
    def kind(self) -> str:
        """'none', 'detections', 'classes', 'checksum' or 'parts' (nothing but parts)."""
        kind = int(self._head["kind"][0])
        return KINDS[kind] if kind < len(KINDS) else "unknown"

    @property
    def frame_size(self) -> tuple[int, int]:
        """Width and height of the frame that the coordinates are pixels of."""
        return int(self._head["frame_width"][0]), int(self._head["frame_height"][0])

    @property
    def checksum(self) -> int:
        """Of the input's bytes (the emulated executor)."""
        return int(self._head["checksum"][0])

    @property
    def model_version(self) -> int:
        """The first 64 bits of the SHA-256 of the model that answered, or of all of the application's models; `leat
        status` shows the same as 16 hex digits (f"{version:016x}"). 0: it has no model file."""
        return int(self._head["model_version"][0])

    @property
    def not_finite(self) -> bool:
        """Some of the model's numbers were NaN or infinite: boxes, points, labels and cells that they decide are left
        out, and tensors hold them as they are."""
        return bool(self._head["flags"][0] & 1)

    @property
    def detections(self) -> np.ndarray:
        """A structured array: box (4), score, class_id, label_count, labels; best score first."""
        return self._head["detections"][0][: int(self._head["detection_count"][0])]

    @property
    def detections_left_out(self) -> int:
        """Found, but over the room of a result."""
        return int(self._head["detections_left_out"][0])

    @property
    def boxes(self) -> np.ndarray:
        """(n, 4) float32, x0 y0 x1 y1."""
        return self.detections["box"]

    @property
    def scores(self) -> np.ndarray:
        """(n,) float32 of the detections."""
        return self.detections["score"]

    @property
    def classes(self) -> np.ndarray:
        """A classifier's best classes, best first: a structured array of class_id and score."""
        return self._head["classes"][0][: int(self._head["class_count"][0])]

    @property
    def parts(self) -> list[Part]:
        """What was written behind the head; entries that do not lie within the slot are left out, as in leat_part_at()."""
        count = min(int(self._head["part_count"][0]), MAX_PARTS)
        if self._bytes.size < PAYLOAD_OFFSET:
            return []
        found = (self._part(p) for p in self._bytes[PARTS_OFFSET:][: count * PART.itemsize].view(PART))
        return [part for part in found if part is not None]

    def part(self, kind: str, name: str | None = None) -> Part | None:
        """The first part of a kind ('tensor', 'text', 'map', ...), of any name or of this one."""
        return next((p for p in self.parts if p.kind == kind and name in (None, p.name)), None)

    def _part(self, entry: np.ndarray) -> Part | None:
        kind = PART_KINDS[entry["kind"]] if entry["kind"] < len(PART_KINDS) else "none"
        offset, size, rank = int(entry["offset"]), int(entry["bytes"]), int(entry["rank"])
        if kind == "none" or rank > 4 or entry["dtype"] >= len(_library.DTYPES):
            return None
        if offset < PAYLOAD_OFFSET or offset % 64 != 0 or size > self._bytes.size - offset:
            return None
        dims = [int(d) for d in entry["dims"][:rank]]
        each = bool(entry["item"])
        if each and dims and self.kind == "detections":
            dims[0] = min(dims[0], len(self))
        element = _ELEMENTS.get(kind) or np.dtype(_library.DTYPES[entry["dtype"]])
        payload = self._bytes[offset : offset + size]
        used = math.prod(dims) * element.itemsize
        if used > size:
            return None
        array = payload[:used].view(element).reshape(dims).view(View)
        return Part(kind, entry["name"].decode(errors="replace"), int(entry["module"]), each, array, payload)

    def name(self, class_id: int, head: int = 0) -> str:
        """The class's name, or its number where the application has no labels."""
        return self._class_name(class_id, head) or str(class_id)

    def __iter__(self) -> Iterator[Detection]:
        for row in self.detections:
            labels = tuple(
                Label(int(l["head"]), int(l["class_id"]), self.name(int(l["class_id"]), 1 + int(l["head"])), float(l["score"]))
                for l in row["labels"][: int(row["label_count"])]
            )
            class_id = int(row["class_id"])
            yield Detection(tuple(row["box"].tolist()), float(row["score"]), class_id, self.name(class_id), labels)

    def __len__(self) -> int:
        return int(self._head["detection_count"][0])
