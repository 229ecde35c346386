"""Rules of what a tracker expects to have lost, from files; no leatd is needed."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path

import leat
from leat import _library


def rule(asks: str = "yes", tracker: str = "blocks") -> str:
    weights = "".join(f"{name} {0.01 * i}\n" for i, name in enumerate(_library.CERTAINTY_TERMS))
    return f"leat-certainty 1\n# made by hand\ntracker {tracker}\nasks {asks}\n{weights}"


class Certainty(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "gate.certainty"

    def read(self, text: str) -> leat.Certainty:
        self.path.write_text(text)
        return leat.Certainty(self.path)

    def test_it_weighs_terms(self) -> None:
        read = self.read(rule())
        self.assertEqual((read.tracker, read.asks), ("blocks", True))
        self.assertAlmostEqual(read.weights["age_small"], 0.13, places=6)
        terms = [0.0] * len(read.weights)
        self.assertEqual(read.expected(terms), 0)
        terms[list(read.weights).index("spread")] = 3
        self.assertAlmostEqual(read.expected(terms), 0.06, places=6)
        self.assertEqual(read.expected([1e6] * len(terms)), 1)
        with self.assertRaisesRegex(leat.InvalidArgument, "2 terms given; there are 14"):
            read.expected([1, 2])

    def test_one_that_tells_nothing_expects_nothing(self) -> None:
        read = self.read(rule("no"))
        self.assertFalse(read.asks)
        self.assertEqual(read.expected([1.0] * 14), -1)

    def test_what_is_no_rule(self) -> None:
        with self.assertRaisesRegex(leat.InvalidArgument, "first line"):
            self.read("{}\n")
        with self.assertRaisesRegex(leat.InvalidArgument, "line 4"):
            self.read(rule("maybe"))
        with self.assertRaisesRegex(leat.InvalidArgument, "cannot be read"):
            leat.Certainty(self.path.with_name("none"))


if __name__ == "__main__":
    unittest.main()
