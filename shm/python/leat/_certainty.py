"""What a tracker expects to have lost, by a rule made of one's own videos (`leat certainty --out`)."""

from __future__ import annotations

import ctypes
import os
from typing import Sequence

from leat import _library
from leat._errors import InvalidArgument, check


class Certainty:
    """The rule in a file. `tracker`: whose terms it weighs; `asks`: False where it told no more than an answer's age;
    `weights`: by the names of the terms.

        rule = leat.Certainty("gate.certainty")
        stream.should_submit(taken_at, rule.expected(terms))     # of your tracker, see leat/certainty.hpp
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._rule = _library.Certainty()
        check(_library.quick.leat_read_certainty(os.fsencode(path), self._rule))

    @property
    def tracker(self) -> str:
        return self._rule.tracker.decode(errors="replace")

    @property
    def asks(self) -> bool:
        return bool(self._rule.asks)

    @property
    def weights(self) -> dict[str, float]:
        return dict(zip(_library.CERTAINTY_TERMS, self._rule.weight))

    def expected(self, terms: Sequence[float]) -> float:
        """The loss, 0 to 1, that these terms, in the order of `weights`, let expect; -1 where `asks` is False."""
        if len(terms) != len(_library.CERTAINTY_TERMS):
            raise InvalidArgument(f"{len(terms)} terms given; there are {len(_library.CERTAINTY_TERMS)}, those of weights")
        array = (ctypes.c_float * len(terms))(*terms)
        return _library.quick.leat_certainty_expected(self._rule, array)
