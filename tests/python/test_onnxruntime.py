"""leat.onnxruntime against a real leatd: the values that the operators of ONNX are defined to give, batches of any length,
several threads and sessions, refusals, and a leatd that is started again."""

from __future__ import annotations

import os
import tempfile
import threading
import unittest
from pathlib import Path

import numpy as np
import tiny_onnx as onnx
from daemon import TENSORS_CONFIG, Daemon

import leat
import leat.onnxruntime as ort

CONFIG = """
[daemon]
socket = "{socket}"
[[partition]]
name = "p"
kind = "cpu"
cores = "0"
[[application]]
name = "sums"
slo_ms = 60000
  [[application.module]]
  name = "m"
  model = "{model}"
  preprocess = "tensors"
  postprocess = "tensors"
  batch = 4
[[application]]
name = "echo"
slo_ms = 60000
  [[application.module]]
  name = "sum"
  executor = "emulated"
  latency_ms = [0]
"""

# total = a + b, product = relu(a * b), count = n + n, with `a` and `b` of three by four.
MODEL = onnx.model(
    [
        onnx.node("Add", ["a", "b"], ["total"]),
        onnx.node("Mul", ["a", "b"], ["raw"]),
        onnx.node("Relu", ["raw"], ["product"]),
        onnx.node("Add", ["n", "n"], ["count"]),
    ],
    [onnx.value("a", onnx.FLOAT, ["batch", 3, 4]), onnx.value("b", onnx.FLOAT, ["batch", 3, 4]), onnx.value("n", onnx.INT64, ["batch", 1])],
    [onnx.value("total", onnx.FLOAT, ["batch", 3, 4]), onnx.value("product", onnx.FLOAT, ["batch", 3, 4]), onnx.value("count", onnx.INT64, ["batch", 1])],
)


def feed_of(items: int, seed: int = 1) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    return {
        "a": random.normal(size=(items, 3, 4)).astype(np.float32),
        "b": random.normal(size=(items, 3, 4)).astype(np.float32),
        "n": random.integers(-5, 5, (items, 1)),
    }


def expected_of(feed: dict[str, np.ndarray]) -> list[np.ndarray]:
    return [feed["a"] + feed["b"], np.maximum(feed["a"] * feed["b"], 0), feed["n"] * 2]


class Session(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory(prefix="leat-python-")
        cls.model = str(Path(cls.folder.name) / "sums.onnx")
        Path(cls.model).write_bytes(MODEL)
        cls.daemon = Daemon(text=CONFIG, model=cls.model)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.daemon.__exit__()
        cls.folder.cleanup()

    def session(self, model: object = None, **options: object) -> ort.InferenceSession:
        return ort.InferenceSession(self.model if model is None else model, socket=self.daemon.socket, **options)

    def check(self, results: list[np.ndarray], feed: dict[str, np.ndarray]) -> None:
        for result, expected in zip(results, expected_of(feed), strict=True):
            self.assertEqual(result.dtype, expected.dtype)
            np.testing.assert_array_equal(result, expected)

    def test_says_what_the_model_takes_and_gives(self) -> None:
        session = self.session(sess_options=ort.SessionOptions(), providers=["CPUExecutionProvider"])
        self.assertEqual(
            [(i.name, i.type, i.shape) for i in session.get_inputs()],
            [("a", "tensor(float)", ["batch", 3, 4]), ("b", "tensor(float)", ["batch", 3, 4]), ("n", "tensor(int64)", ["batch", 1])],
        )
        self.assertEqual([o.name for o in session.get_outputs()], ["total", "product", "count"])
        self.assertEqual(session.get_outputs()[2].type, "tensor(int64)")
        self.assertEqual(session.get_providers(), ort.get_available_providers())
        self.assertNotEqual(session.get_modelmeta().version, 0)

    def test_values_are_those_of_the_operators(self) -> None:
        session = self.session()
        for items in (1, 2, 30):  # more than there are slots, too
            feed = feed_of(items, items)
            results = session.run(None, feed)
            self.check(results, feed)
            for result in results:
                result += 1  # the caller's own
        feed = feed_of(2)
        count, total = session.run(["count", "total"], feed)
        np.testing.assert_array_equal(count, feed["n"] * 2)
        np.testing.assert_array_equal(total, feed["a"] + feed["b"])
        feed["a"] = np.asfortranarray(feed["a"])
        self.check(session.run(None, feed), feed)

    def test_is_found_by_bytes_by_file_and_by_name(self) -> None:
        feed = feed_of(1)
        for session in (self.session(MODEL), self.session("sums"), self.session("elsewhere.onnx", application="sums")):
            self.check(session.run(None, feed), feed)
        with self.assertRaisesRegex(leat.NoSuchApplication, "no file 'missing.onnx'"):
            self.session("missing.onnx")
        with self.assertRaisesRegex(leat.NoSuchApplication, "no application of the model"):
            self.session(MODEL + b"\x00")
        with self.assertRaisesRegex(leat.NoSuchApplication, "'other'"):
            self.session(application="other")
        with self.assertRaisesRegex(leat.FormatMismatch, 'preprocess = "tensors"'):
            self.session(application="echo")

    def test_threads_share_a_session_and_programs_a_model(self) -> None:
        sessions = [self.session(depth=2), self.session()]
        wrong: list[str] = []

        def work(number: int) -> None:
            for round in range(10):
                feed = feed_of(1 + number % 3, number * 100 + round)
                try:
                    self.check(sessions[number % 2].run(None, feed), feed)
                except BaseException as problem:  # noqa: BLE001
                    wrong.append(repr(problem))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertFalse(any(thread.is_alive() for thread in threads))
        self.assertEqual(wrong, [])

    def test_run_async_calls_back(self) -> None:
        session = self.session()
        came: dict[int, tuple] = {}
        done = threading.Event()

        def back(results: list[np.ndarray], number: int, error: str) -> None:
            came[number] = (results, error)
            if len(came) == 3:
                done.set()

        feed = feed_of(2)
        session.run_async(None, feed, back, 1)
        session.run_async(["count"], feed, back, 2)
        session.run_async(["nothing"], feed, back, 3)
        self.assertTrue(done.wait(60))
        self.check(came[1][0], feed)
        np.testing.assert_array_equal(came[2][0][0], feed["n"] * 2)
        self.assertEqual(came[3][0], [])
        self.assertIn("Invalid output name", came[3][1])

    def test_what_is_wrong_with_a_feed_is_one_line(self) -> None:
        session = self.session()
        feed = feed_of(2)
        for change, line in (
            ({"a": feed["a"].astype(np.float64)}, r"tensor\(double\)"),
            ({"a": feed["a"][:, :2]}, "Got invalid dimensions for input: a"),
            ({"a": feed["a"][0]}, "Got invalid dimensions for input: a"),
            ({"a": feed["a"][:1]}, "batches differ"),
            ({"z": feed["a"]}, "Invalid input name: z"),
        ):
            with self.assertRaisesRegex(leat.InvalidArgument, line) as caught:
                session.run(None, {**feed, **change})
            self.assertNotIn("\n", str(caught.exception))
        with self.assertRaisesRegex(leat.InvalidArgument, "missing from input feed"):
            session.run(None, {"a": feed["a"]})
        with self.assertRaisesRegex(leat.InvalidArgument, "batches differ or are empty"):
            session.run(None, {name: tensor[:0] for name, tensor in feed.items()})
        self.check(session.run(None, feed), feed)

    def test_what_cannot_be_had_is_refused_in_one_line(self) -> None:
        session = self.session()
        for ask in (
            session.io_binding,
            lambda: session.run_with_ort_values(None, {}),
            lambda: ort.SessionOptions().register_custom_ops_library("x.so"),
            lambda: ort.SessionOptions().add_free_dimension_override_by_name("n", 2),
            lambda: self.session(disabled_optimizers=["x"]),
        ):
            with self.assertRaisesRegex(NotImplementedError, "leat.onnxruntime has no") as caught:
                ask()
            self.assertNotIn("\n", str(caught.exception))

    def test_a_refusal_says_its_reason(self) -> None:
        session = self.session(slo_ms=60000.0)
        connection = session._connected()
        with self.assertRaises(ort.Refused) as caught:
            cookie = connection.submit([t[0] for t in feed_of(1).values()], deadline_ns=1)  # long past
            while (came := connection.wait({cookie: 0})) is None:
                pass
            session._outputs_of(came[1], ["total"])
        self.assertEqual(caught.exception.outcome, "dropped")
        self.assertIn(caught.exception.reason, ("expired", "unreachable"))


class Again(unittest.TestCase):
    def test_the_next_call_finds_a_leatd_that_was_started_again(self) -> None:
        with tempfile.TemporaryDirectory(prefix="leat-python-") as folder:
            model = Path(folder) / "sums.onnx"
            model.write_bytes(MODEL)
            feed = feed_of(3)
            with Daemon(text=CONFIG, model=str(model)) as daemon:
                session = ort.InferenceSession(str(model), socket=daemon.socket)
                session.run(None, feed)
                daemon.kill()
                with self.assertRaises(leat.Error):
                    session.run(None, feed)
                with self.assertRaises(leat.DaemonAbsent):
                    session.run(None, feed)
                daemon.start()
                np.testing.assert_array_equal(session.run(["total"], feed)[0], feed["a"] + feed["b"])


class AgainstOnnxRuntime(unittest.TestCase):
    """The same call to ONNX Runtime itself, where this machine has its Python package."""

    def test_the_demos_detector(self) -> None:
        try:
            import onnxruntime
        except ImportError:
            self.skipTest("there is no ONNX Runtime for Python here")
        model = os.environ["LEAT_DETECT"]
        with Daemon(text=TENSORS_CONFIG, model=model) as daemon:
            ours = ort.InferenceSession(model, socket=daemon.socket, application="tensors")
            theirs = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
            shape = [1, *ours.get_inputs()[0].shape[1:]]
            feed = {ours.get_inputs()[0].name: np.random.default_rng(1).normal(size=shape).astype(np.float32)}
            for a, b in zip(ours.run(None, feed), theirs.run(None, feed), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


if __name__ == "__main__":
    unittest.main()
