"""A camera as people have them in Python: two models by ONNX Runtime's InferenceSession, here leat.onnxruntime's, with NumPy
before, between and behind them. Run by the contender leat-session as session_camera.py DESCRIPTION, a JSON object; the
pictures are the descriptor 3. Says "ready", begins with the line that comes in, a timetable, says what became of each
picture, "end", and ends with its input."""

from __future__ import annotations

import json
import os
import sys
import time

import numpy as np

import leat.onnxruntime as ort

SCORE, OVERLAP, STRIDE, CROP, MOST = 0.2, 0.6, 8.0, 0.1, 16  # as tools/models/shapes/shapes.toml says


class Camera:
    def __init__(self, said: dict) -> None:
        self.said, self.width, self.height = said, said["width"], said["height"]
        options = {"socket": said["socket"], "slo_ms": said["deadline_ns"] / 1e6}
        self.detect = ort.InferenceSession(said["detect"], application="detect", **options)
        self.classify = ort.InferenceSession(said["classify"], application="classify", **options)
        rows, columns = self.detect.get_inputs()[0].shape[2:]
        self.scale = max(self.width / columns, self.height / rows)
        self.left, self.top = (columns - self.width / self.scale) / 2, (rows - self.height / self.scale) / 2
        self.xs = (np.arange(columns) - self.left + 0.5) * self.scale
        self.ys = (np.arange(rows) - self.top + 0.5) * self.scale
        self.side = self.classify.get_inputs()[0].shape[2]
        self.memory = np.empty(self.width * self.height * 3 // 2, np.uint8)

    def read(self, picture: int) -> None:
        at = (self.said["first"] + picture % self.said["count"]) * self.memory.size
        os.preadv(3, [self.memory], at)

    def pixels(self, xs: np.ndarray, ys: np.ndarray) -> np.ndarray:
        """[3, rows, columns], the nearest pixels as the models take them; grey beyond the picture."""
        area = self.width * self.height
        inside_x, inside_y = (xs >= 0) & (xs < self.width), (ys >= 0) & (ys < self.height)
        x, y = np.clip(xs, 0, self.width - 1).astype(np.intp), np.clip(ys, 0, self.height - 1).astype(np.intp)
        light = self.memory[:area].reshape(self.height, self.width)[np.ix_(y, x)].astype(np.float32)
        colour = self.memory[area:].reshape(self.height // 2, self.width // 2, 2)[np.ix_(y // 2, x // 2)].astype(np.float32) - 128
        u, v = colour[..., 0], colour[..., 1]
        base = 1.164 * (light - 16)
        rgb = np.stack([base + 1.596 * v, base - 0.392 * u - 0.813 * v, base + 2.017 * u])
        rgb = np.clip(rgb, 0, 255) / 127.5 - 1
        rgb[:, ~inside_y, :] = 0
        rgb[:, :, ~inside_x] = 0
        return rgb

    def boxes(self, out: np.ndarray) -> np.ndarray:
        """Of the picture, best first: [boxes, 4]."""
        score = 1 / (1 + np.exp(-out[0]))
        y, x = np.nonzero(score >= SCORE)
        order = np.argsort(-score[y, x])
        y, x = y[order], x[order]
        l, t, r, b = out[1:, y, x]
        found = np.stack([x + 0.5 - l, y + 0.5 - t, x + 0.5 + r, y + 0.5 + b], axis=1) * STRIDE
        kept: list[np.ndarray] = []
        for box in found:
            if len(kept) == MOST:
                break
            if all(overlap(box, other) <= OVERLAP for other in kept):
                kept.append(box)
        return (np.array(kept).reshape(-1, 4) - [self.left, self.top, self.left, self.top]) * self.scale

    def crop(self, box: np.ndarray) -> np.ndarray:
        grown = np.array([-1, -1, 1, 1]) * np.tile(box[2:] - box[:2], 2) * CROP + box
        steps = (np.arange(self.side) + 0.5) / self.side
        return self.pixels(grown[0] + steps * (grown[2] - grown[0]), grown[1] + steps * (grown[3] - grown[1]))

    def answer(self, due_ns: int) -> bool:
        """Whether the picture was answered; not: it was given up."""
        try:
            if time.monotonic_ns() > due_ns + self.said["deadline_ns"]:
                return False
            (found,) = self.detect.run(None, {self.detect.get_inputs()[0].name: self.pixels(self.xs, self.ys)[None]})
            boxes = self.boxes(found[0])
            if len(boxes):
                self.classify.run(None, {self.classify.get_inputs()[0].name: np.stack([self.crop(box) for box in boxes])})
            return True
        except ort.Refused:
            return False

    def film(self, times: dict) -> list[str]:
        lines, picture, period, first = [], 0, times["period_ns"], times["first_ns"]
        while picture < times["pictures"]:
            time.sleep(max(0, first + picture * period - time.monotonic_ns()) / 1e9)
            newest = min(max((time.monotonic_ns() - first) // period, picture), times["pictures"] - 1)
            lines += [f"{passed} 0" for passed in range(picture, newest)]
            picture = newest
            self.read(picture)
            good = self.answer(first + picture * period)
            lines.append(f"{picture} {time.monotonic_ns() if good else 0}")
            picture += 1
        return lines


def overlap(a: np.ndarray, b: np.ndarray) -> float:
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    return width * height / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - width * height)


def main() -> None:
    camera = Camera(json.loads(sys.argv[1]))
    camera.read(0)
    camera.answer(time.monotonic_ns())
    print("ready", flush=True)
    print("\n".join(camera.film(json.loads(sys.stdin.readline()))) + "\nend", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
