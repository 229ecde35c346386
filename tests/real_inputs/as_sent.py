"""The files of this folder, models whose answers are the pixels that they were given, and how far those are from what is expected."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "python"), str(HERE.parent / "gateway")]
import tiny_onnx as onnx

WORDS = "stretch rgb norm=raw"
LARGEST, MEAN = 2.0, 0.5  # of 255: how far a pixel may be from what is expected, and all of them


@dataclass(frozen=True)
class Input:
    file: str
    width: int
    height: int
    stride: int
    frames: int
    kind: str
    made_by: str
    expected_by: str
    format: str = ""  # of a raw file
    said: str = ""  # of it: what only its user knows
    range: str = ""
    matrix: str = ""

    @property
    def path(self) -> str:
        return str(HERE / "files" / self.file)

    @property
    def largest(self):
        """libavcodec and libjpeg differ by 1 in Y, Cb and Cr here and there, which is up to 3 in blue."""
        return 3.0 if self.file.endswith(".jpg") else LARGEST

    @property
    def mean(self) -> float:
        """libavcodec cuts off what it multiplies of CMYK, where Pillow rounds: .93 darker in the mean."""
        return 1.0 if "cmyk" in self.file else MEAN

    @property
    def application(self) -> str:
        return f"at{self.width}x{self.height}"

    @property
    def colour(self) -> dict[str, str]:
        """What its user says of a raw file, as options of a stream."""
        parts = re.fullmatch(r"([a-z]+)(\d+)", self.said)
        return {"color_range": parts[1], "color_matrix": "bt" + parts[2]} if parts else {}

    @property
    def coarse(self) -> int:
        """Every how manyth place of the grid is looked at where an answer holds few values."""
        return 10 if self.width > 1000 else 6

    def expected(self, frame: int, every: int = 1) -> list[int]:
        """Channel by channel, row by row."""
        text = (HERE / "expected" / (self.file + ".ppm")).read_bytes()
        _, size, _, pixels = text.split(b"\n", 3)
        width, height = map(int, size.split())
        height //= self.frames
        pixels = pixels[frame * height * width * 3 :]
        return [pixels[(y * width + x) * 3 + c] for c in range(3) for y in range(0, height, every) for x in range(0, width, every)]


def inputs(*kinds: str) -> list[Input]:
    return [i for one in json.loads((HERE / "inputs.json").read_text()) if (i := Input(**one)).kind in kinds]


def difference(seen: list[float], expected: list[int]) -> tuple[float, float]:
    """The largest of pixels (rounded, as those expected are), and the mean of values."""
    if len(seen) != len(expected):
        raise AssertionError(f"{len(seen)} values, and {len(expected)} are expected")
    largest = max(abs(round(a) - b) for a, b in zip(seen, expected))
    return largest, sum(abs(a - b) for a, b in zip(seen, expected)) / len(expected)


def grid_model(i: Input, every: int = 1) -> bytes:
    """Its output is each `stride * every`th pixel."""
    stride = i.stride * every
    shape = (1, 3, (i.height - 1) // stride + 1, (i.width - 1) // stride + 1)
    nodes = [onnx.node("MaxPool", ["x"], ["grid"], kernel_shape=[1, 1], strides=[stride, stride])]
    return onnx.model(nodes, [onnx.value("x", onnx.FLOAT, (1, 3, i.height, i.width))], [onnx.value("grid", onnx.FLOAT, shape)])


BOXES = "boxes columns=x0,y0,x1,y1,s,c score=0.1 iou=1"


def boxes_model(i: Input) -> bytes:
    """For ways that give boxes alone: as value `c` of the coarse grid goes from 0 to 255, detection `c` scores .5 to 1. What callers leave out by
    default is below."""
    stride = i.stride * i.coarse
    rows, columns = (i.height - 1) // stride + 1, (i.width - 1) // stride + 1
    count = 3 * rows * columns
    boxes = [float(v) for n in range(count) for v in (n % 12 * 4, n // 12 * 4, n % 12 * 4 + 3, n // 12 * 4 + 3)]
    nodes = [
        onnx.node("MaxPool", ["x"], ["grid"], kernel_shape=[1, 1], strides=[stride, stride]),
        onnx.node("Reshape", ["grid", "column"], ["values"]),
        onnx.node("Mul", ["values", "scale"], ["scaled"]),
        onnx.node("Add", ["scaled", "offset"], ["scores"]),
        onnx.node("Concat", ["boxes", "scores", "classes"], ["rows"], axis=2),
    ]
    constants = [
        onnx.constant("column", (3,), [1, count, 1]),
        onnx.constant("scale", (1,), [0.499 / 255]),
        onnx.constant("offset", (1,), [0.5]),
        onnx.constant("boxes", (1, count, 4), boxes),
        onnx.constant("classes", (1, count, 1), [float(n) for n in range(count)]),
    ]
    return onnx.model(nodes, [onnx.value("x", onnx.FLOAT, (1, 3, i.height, i.width))], [onnx.value("rows", onnx.FLOAT, (1, count, 6))], constants)


def values_of_boxes(found: dict[int, float]) -> list[float]:
    """Of scores by class."""
    return [(found[n] - 0.5) / 0.499 * 255 for n in sorted(found)]
