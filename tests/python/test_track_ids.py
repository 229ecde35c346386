"""Identities from Python: the C library's own, on arrays of detections; no leatd is needed."""

from __future__ import annotations

import os
import struct
import subprocess
import unittest

import numpy as np

import leat
from leat._results import DETECTION


def found(*boxes: tuple[float, float, float, int]) -> np.ndarray:
    """(x, y, score, class) of squares of 50 pixels."""
    array = np.zeros(len(boxes), DETECTION)
    for row, (x, y, score, class_id) in zip(array, boxes):
        row["box"], row["score"], row["class_id"] = (x, y, x + 50, y + 50), score, class_id
    return array


class TrackIds(unittest.TestCase):
    def test_they_stay_with_what_moves(self) -> None:
        tracks = leat.TrackIds()
        for step in range(20):
            ids = tracks.update_at(step * 33_000_000, found((10 * step, 0, 0.9, 0), (400 - 10 * step, 100, 0.9, 0))[:: (-1) ** step])
            self.assertEqual(sorted(ids), [1, 2])
            self.assertEqual(ids.tolist(), [1, 2] if step % 2 == 0 else [2, 1])
        self.assertEqual(ids.dtype, np.uint64)

    def test_options(self) -> None:
        tracks = leat.TrackIds(classes=[3], min_score=0.5, high_score=0.5, new_score=0.5, lost=0)
        self.assertEqual(tracks.update_at(0, found((0, 0, 0.9, 2), (100, 0, 0.55, 3), (200, 0, 0.4, 3))).tolist(), [0, 1, 0])
        self.assertEqual(tracks.update_at(1, found()).tolist(), [])
        self.assertEqual(tracks.update_at(2, found((100, 0, 0.9, 3))).tolist(), [0])  # waited for no time
        with self.assertRaisesRegex(leat.InvalidArgument, "min_score <= high_score"):
            leat.TrackIds(min_score=0.9)

    def test_of_an_answer(self) -> None:
        class Result:
            detections = found((0, 0, 0.9, 0))

        class Answer:
            capture_ns, result = 5, Result()

        tracks = leat.TrackIds()
        self.assertEqual(tracks.update(Answer()).tolist(), [1])
        Answer.result = None  # dropped
        self.assertEqual(tracks.update(Answer()).tolist(), [])
        Answer.result = Result()
        self.assertEqual(tracks.update(Answer()).tolist(), [1])

    def test_they_are_those_of_cpp(self) -> None:
        """LEAT_TRACK_IDS names a program that reads answers and prints their identities."""
        random = np.random.default_rng(27)
        place, speed = random.uniform(0, 600, (12, 2)), random.uniform(-90, 90, (12, 2))
        answers = []
        for step in range(200):
            if random.random() < 0.2:  # dropped
                continue
            seen = random.permutation(12)[: random.integers(8, 13)]  # who is missed, and in which order, changes
            at = place + speed * (step / 10 % 6) + random.normal(0, 2, (12, 2))
            answers.append((step * 100_000_000, found(*((*at[i], random.uniform(0.05, 1), int(i) % 3) for i in seen))))
        answers.insert(100, answers[97])  # one that comes late
        told = b"".join(struct.pack("=qQ", at, len(array)) + array.tobytes() for at, array in answers)
        lines = subprocess.run([os.environ["LEAT_TRACK_IDS"]], input=told, check=True, capture_output=True).stdout.splitlines()
        tracks = leat.TrackIds()
        ids = [tracks.update_at(at, array).tolist() for at, array in answers]
        self.assertEqual(ids, [[int(word) for word in line.split()] for line in lines])
        self.assertGreater(max(map(max, ids)), 12)  # some were lost and came anew, not all
        self.assertGreater(sum(id > 0 for row in ids for id in row), 400)


if __name__ == "__main__":
    unittest.main()
