"""The package against a real leatd: every frame answered once with its own bytes, life times, errors, threads, signals."""

from __future__ import annotations

import gc
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import unittest
import weakref

import numpy as np
from daemon import TENSORS_CONFIG, Daemon

import leat
from leat import _library

PATIENCE = 60.0  # seconds; the machine may have other work


def checksum(data: bytes) -> int:
    """What the emulated executor answers for these bytes (engine/exec/checksum.h)."""
    mask, prime = (1 << 64) - 1, 0x9E3779B185EBCA87
    lanes = [len(data), mask, prime, prime ^ mask]
    for at in range(0, len(data), 32):
        words = np.frombuffer(data[at : at + 32].ljust(32, b"\0"), "<u8")
        lanes = [(lane ^ int(word)) * prime & mask for lane, word in zip(lanes, words)]
        lanes = [lane ^ lane >> 29 for lane in lanes]
    out = len(data)
    for lane in lanes:
        out = (out ^ lane) * prime & mask
        out ^= out >> 32
    return out


class WithDaemon(unittest.TestCase):
    daemon: Daemon

    @classmethod
    def setUpClass(cls) -> None:
        cls.daemon = Daemon()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.daemon.__exit__()

    def connect(self) -> leat.Client:
        client = leat.connect(self.daemon.socket, "test", timeout=PATIENCE)
        self.addCleanup(client.close)
        return client


class Frames(WithDaemon):
    def test_answers_carry_their_own_frame(self) -> None:
        client = self.connect()
        stream = client.open_stream("echo", "gray8", 64, 16, depth=8, slots=8, overload="fifo")
        random = np.random.default_rng(1)
        expected: dict[int, int] = {}
        sent = 0
        for round in range(25):
            while True:
                try:
                    frame = stream.acquire()
                except leat.RingFull:
                    break
                frame.array[:] = random.integers(0, 256, frame.array.shape, np.uint8)
                sent += 1
                expected[frame.submit(cookie=sent)] = checksum(frame.array.tobytes())
            for answer in client.drain():
                with answer:
                    self.assertEqual(answer.outcome, "completed")
                    self.assertEqual(answer.result.kind, "checksum")
                    self.assertEqual(answer.result.checksum, expected.pop(answer.ticket))
        self.assertEqual(sent, 200)
        self.assertFalse(expected)
        self.assertEqual(client.in_flight, 0)

    def test_planes_are_views_with_the_slots_strides(self) -> None:
        client = self.connect()
        shapes = {
            "nv12": [(48, 100), (24, 50, 2)],
            "i420": [(48, 100), (24, 50), (24, 50)],
            "rgb24": [(48, 100, 3)],
            "bgr24": [(48, 100, 3)],
            "gray8": [(48, 100)],
        }
        for format, expected in shapes.items():
            with client.open_stream("echo", format, 100, 48) as stream, stream.acquire() as frame:
                self.assertEqual([p.shape for p in frame.planes], expected)
                for plane in frame.planes:
                    self.assertTrue(plane.flags.writeable)
                    self.assertFalse(plane.flags.owndata)
                    self.assertEqual(plane.strides[0] % 64, 0)
                    plane[...] = 7
                frame.submit()
                for plane in frame.planes:
                    with self.assertRaises(ValueError):
                        plane[...] = 1  # the slot is leatd's now
                with client.next_answer(PATIENCE) as answer:
                    for plane in answer.planes:
                        self.assertTrue((plane == 7).all())
                        self.assertFalse(plane.flags.writeable)

    def test_a_frame_left_alone_goes_back(self) -> None:
        client = self.connect()
        stream = client.open_stream("echo", "gray8", 16, 16, depth=1, slots=1)
        for _ in range(3):
            with stream.acquire():
                with self.assertRaises(leat.RingFull):
                    stream.acquire()
        frame = stream.acquire()
        del frame
        stream.acquire().abandon()

    def test_submit_copies_an_array(self) -> None:
        client = self.connect()
        stream = client.open_stream("echo", "gray8", 64, 4)
        picture = np.arange(256, dtype=np.uint8).reshape(4, 64)
        stream.submit(picture)
        with client.next_answer(PATIENCE) as answer:
            self.assertEqual(answer.result.checksum, checksum(picture.tobytes()))
            self.assertTrue((answer.array == picture).all())
            self.assertGreater(answer.latency_ns, 0)
        with self.assertRaises(ValueError):
            stream.submit(np.zeros((5, 5), np.uint8))
        stream.submit(picture)  # nothing of the failed one is left behind
        next(client.drain()).release()

    def test_what_is_no_picture_of_the_stream_is_refused_and_nothing_is_sent(self) -> None:
        client = self.connect()
        stream = client.open_stream("echo", "rgb24", 64, 4, depth=1, slots=1)
        picture = np.full((4, 64, 3), 200, np.uint8)
        wrong = [
            (picture / 255.0, TypeError, "float64 (4, 64, 3)"),
            (picture.astype(np.float32), TypeError, "float32 (4, 64, 3)"),
            (picture > 0, TypeError, "bool (4, 64, 3)"),
            (picture.astype(np.int8), TypeError, "int8 (4, 64, 3)"),
            ([[1]], TypeError, "int64 (1, 1)"),
            (np.zeros((1, 1, 3), np.uint8), ValueError, "uint8 (1, 1, 3)"),
            (np.zeros((4, 64), np.uint8), ValueError, "uint8 (4, 64)"),
            (np.zeros((1, 4, 64, 3), np.uint8), ValueError, "uint8 (1, 4, 64, 3)"),
            (np.uint8(7), ValueError, "uint8 ()"),
        ]
        for given, error, named in wrong:
            with self.assertRaises(error) as caught:
                stream.submit(given)
            self.assertIn(f"it is {named}, and the stream's are uint8 (4, 64, 3)" if error is TypeError else named, str(caught.exception))
            self.assertIn("uint8 (4, 64, 3)", str(caught.exception))
        self.assertEqual(client.in_flight, 0)
        for right in (picture, np.asfortranarray(picture), picture[::-1], memoryview(picture)):
            stream.submit(right)
            with client.next_answer(PATIENCE) as answer:
                self.assertTrue((answer.array == np.asarray(right)).all())

    def test_colors_are_the_streams_or_the_frames(self) -> None:
        client = self.connect()
        stream = client.open_stream("echo", "nv12", 64, 16, color_range="full")
        for said, wanted in (({}, ("full", "bt601")), ({"color_range": "limited", "color_matrix": "bt709"}, ("limited", "bt709")), ({"damaged": True}, ("full", "bt601"))):
            with stream.acquire() as frame:
                frame.submit(**said)
            with client.next_answer(PATIENCE) as answer:
                self.assertEqual((answer.colors, answer.damaged), (wanted, "damaged" in said))
        with self.assertRaisesRegex(leat.InvalidArgument, "color range 'wide' is not known; one of unspecified, limited, full"):
            client.open_stream("echo", "nv12", 64, 16, color_range="wide")
        with self.assertRaisesRegex(leat.InvalidArgument, "color matrix 'bt470'"):
            stream.acquire().submit(color_matrix="bt470")

    def test_a_picture_that_pillow_reads_is_sent_as_it_is(self) -> None:
        try:
            from PIL import Image
        except ImportError:
            self.skipTest("Pillow (python3-pil) is not installed")
        image = Image.linear_gradient("L").resize((64, 16)).convert("RGB")
        client = self.connect()
        stream = client.open_stream("echo", "rgb24", 64, 16)
        stream.submit(image)
        with client.next_answer(PATIENCE) as answer:
            self.assertEqual(answer.array.tobytes(), image.tobytes())
        with self.assertRaisesRegex(ValueError, re.escape("uint8 (16, 64)")):
            stream.submit(image.convert("L"))

    def test_a_stream_that_waits_for_grants_is_wanted_while_there_is_room(self) -> None:
        client = self.connect()
        stream = client.open_stream("echo", "gray8", 64, 16, waits_for_grants=True)
        for taken in range(1, 4):
            self.assertTrue(stream.wait_wanted(timeout=PATIENCE, capture_ns=taken))
            stream.submit(np.zeros((16, 64), np.uint8))
            client.next_answer(PATIENCE).release()
        self.assertTrue(stream.wanted())
        self.assertTrue(client.open_stream("echo", "gray8", 64, 16).wait_wanted(timeout=0))

    def test_dlpack(self) -> None:
        client = self.connect()
        stream = client.open_stream("echo", "gray8", 64, 4)
        with stream.acquire() as frame:
            frame.array[:] = 9
            self.assertEqual(np.from_dlpack(frame).ctypes.data, frame.array.ctypes.data)
            frame.submit()
        answer = client.next_answer(PATIENCE)
        pixels = answer.array
        alive = weakref.ref(answer)
        shared = np.from_dlpack(pixels)
        self.assertEqual(shared.ctypes.data, pixels.ctypes.data)
        self.assertTrue((shared == 9).all())
        del answer, pixels
        self.assertIsNotNone(alive(), "the capsule's consumer keeps the answer")
        del shared
        self.assertIsNone(alive())
        capsule = stream.acquire().array.__dlpack__()
        del capsule  # never consumed


class Tensors(unittest.TestCase):
    """Raw outputs, for pictures and for tensors that the client prepared itself: the same numbers."""

    def test_outputs_as_they_are(self) -> None:
        with Daemon(text=TENSORS_CONFIG, model=os.environ["LEAT_DETECT"]) as daemon, leat.connect(daemon.socket, timeout=PATIENCE) as client:
            stream = client.open_stream("pictures", "rgb24", 640, 360)
            shape = None
            with stream.acquire() as frame:
                frame.array[:] = 127
                frame.submit()
            answer = client.next_answer(120)
            self.assertEqual(answer.outcome, "completed", daemon.log())
            tensors = [part for part in answer.result.parts if part.kind == "tensor"]
            self.assertTrue(tensors)
            for part in tensors:
                self.assertEqual(part.array.dtype, np.float32)
                self.assertFalse(part.array.flags.writeable)
                self.assertEqual(np.from_dlpack(part.array).ctypes.data, part.array.ctypes.data)
            self.assertIs(answer.result.part("text"), None)
            self.assertEqual(answer.result.part("tensor", tensors[0].name).name, tensors[0].name)

            with self.assertRaises(leat.Error) as refused:
                client.open_stream("tensors", "tensors", tensors=[("float32", (3, 7, 7))])
            found = re.search(r"\[?(3) ?x ?(\d+) ?x ?(\d+)|3, ?(\d+), ?(\d+)", str(refused.exception))
            self.assertIsNotNone(found, str(refused.exception))
            shape = tuple(int(d) for d in re.findall(r"\d+", found.group(0)))[-3:]
            prepared = client.open_stream("tensors", "tensors", tensors=[("float32", shape)])
            with prepared.acquire() as frame:
                self.assertEqual([t.shape for t in frame.tensors], [shape])
                frame.tensors[0][:] = (127 / 255 - 0.5) / 0.5
                frame.submit()
            with client.next_answer(120) as other:
                self.assertEqual(other.outcome, "completed", daemon.log())
                arrays = {part.name: part.array for part in other.result.parts}
                self.assertEqual(set(arrays), {part.name for part in tensors})
                for part in tensors:
                    self.assertEqual(part.array.shape, arrays[part.name].shape)
            prepared.submit(np.full(shape, 0.5))  # float64 for float32 is a cast within its kind
            client.next_answer(PATIENCE).release()
            for given, error in ((np.ones(shape, np.int32), TypeError), (np.ones(shape, bool), TypeError), (np.ones((1, *shape), np.float32), ValueError)):
                with self.assertRaisesRegex(error, re.escape(f"{given.dtype} {given.shape}")):
                    prepared.submit(given)
            module = {a["name"]: a for a in leat.status(daemon.socket)["applications"]}["tensors"]["modules"][0]
            self.assertEqual([(t["dtype"], tuple(t["shape"])) for t in module["inputs"]], [("float32", shape)])
            self.assertTrue(module["inputs"][0]["name"])
            self.assertEqual({t["name"] for t in module["outputs"]}, set(arrays))
            self.assertEqual({t["kind"] for t in module["outputs"]}, {"tensor"})
            with self.assertRaises(leat.InvalidArgument):
                client.open_stream("tensors", "tensors", tensors=[("complex64", shape)])


class Lives(WithDaemon):
    def test_views_keep_what_they_look_at(self) -> None:
        client = leat.connect(self.daemon.socket, timeout=PATIENCE)
        stream = client.open_stream("echo", "gray8", 64, 16)
        frame = stream.acquire()
        frame.array[:] = 3
        frame.submit()
        answer = client.next_answer(PATIENCE)
        pixels, boxes = answer.array, answer.result.boxes
        channel, link = weakref.ref(stream._channel), weakref.ref(client._link)
        stream.close()
        client.close()
        del answer, frame
        self.assertTrue((pixels == 3).all())  # would be a fault if the slot were unmapped
        self.assertEqual(boxes.shape, (0, 4))
        self.assertIsNotNone(channel())
        del pixels, boxes, stream
        self.assertIsNone(channel())
        self.assertIsNone(link())

    def test_a_cycle_ends_in_any_order(self) -> None:
        """The collector may end the connection before an answer that alone still holds it; its slot is gone then."""
        client = leat.connect(self.daemon.socket, "cycle", timeout=PATIENCE)
        stream = client.open_stream("echo", "gray8", 64, 16, depth=2, slots=3, overload="fifo")
        stream.submit(np.zeros((16, 64), np.uint8))
        cycle: list[object] = [client.next_answer(timeout=PATIENCE)]
        cycle.append(cycle)
        client.close()
        gone = weakref.ref(cycle[0])
        del client, stream, cycle
        gc.collect()
        self.assertIsNone(gone())

    def test_a_million_frames_leave_nothing(self) -> None:
        frames = int(os.environ.get("LEAT_PYTHON_FRAMES", "20000"))
        client = self.connect()
        stream = client.open_stream("echo", "gray8", 16, 16, depth=16, slots=16, overload="fifo")

        completed = 0

        def pump(count: int) -> None:
            nonlocal completed
            sent = 0
            while sent < count or client.in_flight:
                while sent < count:
                    try:
                        frame = stream.acquire()
                    except leat.RingFull:
                        break
                    frame.array[0, 0] = sent & 255
                    frame.submit()
                    sent += 1
                with client.next_answer(PATIENCE) as answer:
                    if answer.result is not None:  # a busy machine may have some of them dropped
                        completed += answer.result.checksum is not None

        pump(2000)
        gc.collect()
        references = sys.getrefcount(stream._channel), sys.getrefcount(stream), sys.getrefcount(client)
        files = len(os.listdir("/proc/self/fd"))
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        # The interpreter's own caches grow by a few hundred blocks whenever they like; a leak grows every time.
        grown = []
        for _ in range(3):
            objects, blocks = len(gc.get_objects()), sys.getallocatedblocks()
            pump(frames // 3)
            gc.collect()
            grown.append((len(gc.get_objects()) - objects, sys.getallocatedblocks() - blocks))
        self.assertGreater(completed, frames // 2)
        self.assertLessEqual(min(objects for objects, _ in grown), 20, grown)
        self.assertLessEqual(min(blocks for _, blocks in grown), 200, grown)
        self.assertEqual((sys.getrefcount(stream._channel), sys.getrefcount(stream), sys.getrefcount(client)), references)
        self.assertEqual(len(os.listdir("/proc/self/fd")), files)
        self.assertLessEqual(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, memory + 4096)

    def test_a_stream_that_is_gone_takes_its_answers_with_it(self) -> None:
        client = self.connect()
        first = client.open_stream("echo", "gray8", 16, 16)
        second = client.open_stream("echo", "gray8", 16, 16)
        first.acquire().submit(cookie=1)
        second.acquire().submit(cookie=2)
        del first
        self.assertEqual(client.next_answer(PATIENCE).cookie, 2)


class Errors(WithDaemon):
    def test_each_error_is_an_exception_with_the_librarys_line(self) -> None:
        with self.assertRaises(leat.DaemonAbsent) as caught:
            leat.connect(self.daemon.socket + ".absent")
        self.assertIn(".absent", str(caught.exception))
        self.assertIsInstance(caught.exception, ConnectionError)
        client = self.connect()
        with self.assertRaises(leat.NoSuchApplication):
            client.open_stream("nobody", "gray8", 16, 16)
        with self.assertRaisesRegex(leat.InvalidArgument, "nv12, i420"):
            client.open_stream("echo", "yuv", 16, 16)
        with self.assertRaises(leat.InvalidArgument):
            client.open_stream("echo", "gray8", 0, 16)
        stream = client.open_stream("echo", "gray8", 16, 16)
        with self.assertRaises(leat.InvalidArgument):
            stream.acquire().submit(capture_ns=-1)
        with self.assertRaises(leat.TimedOut):
            client.next_answer(0)
        self.assertIsInstance(leat.TimedOut(), TimeoutError)
        stream.close()
        with self.assertRaises(leat.InvalidArgument):
            stream.acquire()

    def test_every_error_name_has_its_line(self) -> None:
        self.assertEqual(_library.ERROR_NAMES[0], "ok")
        for code in ("daemon_absent", "disconnected", "ring_full", "timed_out", "not_permitted", "no_room", "not_ready"):
            self.assertIn(code, _library.ERROR_NAMES)

    def test_a_killed_daemon_raises(self) -> None:
        with Daemon("[60000]") as daemon:
            client = leat.connect(daemon.socket, timeout=PATIENCE)
            stream = client.open_stream("echo", "gray8", 16, 16, slo_ns=100_000_000_000)
            stream.acquire().submit()
            threading.Timer(0.05, daemon.kill).start()
            with self.assertRaises(leat.Disconnected):
                client.next_answer(60)
            with self.assertRaises(leat.Disconnected):
                while True:
                    stream.acquire().submit()
            client.close()


class Threads(WithDaemon):
    def test_one_thread_submits_while_another_takes(self) -> None:
        client = self.connect()
        stream = client.open_stream("echo", "gray8", 32, 8, depth=8, slots=8, overload="fifo")
        count, seen = 2000, []
        freed = threading.Semaphore(8)

        def take() -> None:
            for _ in range(count):
                with client.next_answer(60) as answer:
                    seen.append((answer.cookie, answer.outcome))
                freed.release()

        taker = threading.Thread(target=take)
        taker.start()
        for cookie in range(count):
            freed.acquire()
            with stream.acquire() as frame:
                frame.array[:] = cookie & 255
                frame.submit(cookie=cookie)
        taker.join()
        self.assertEqual(sorted(seen), [(i, "completed") for i in range(count)])


INTERRUPTED = """
import sys, leat
client = leat.connect(sys.argv[1])
stream = client.open_stream("echo", "gray8", 16, 16, slo_ns=100_000_000_000)
stream.acquire().submit()
try:
    print("waiting", flush=True)
    client.next_answer()
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


class Signals(unittest.TestCase):
    def test_control_c_ends_a_wait_and_leaves_nothing(self) -> None:
        with Daemon("[60000]") as daemon:
            child = subprocess.Popen([sys.executable, "-c", INTERRUPTED, daemon.socket], stdout=subprocess.PIPE, text=True)
            self.assertEqual(child.stdout.readline(), "waiting\n")
            child.send_signal(signal.SIGINT)
            self.assertEqual(child.communicate(timeout=60)[0], "interrupted\n")
            self.assertEqual(child.returncode, 0)
            with leat.connect(daemon.socket, timeout=PATIENCE) as client:  # leatd serves on
                client.open_stream("echo", "gray8", 16, 16).close()


class Layout(unittest.TestCase):
    def test_structures_are_those_of_the_header(self) -> None:
        """LEAT_LAYOUT names a program that prints `structure member offset size` from the C headers."""
        from leat import _results

        lines = subprocess.run([os.environ["LEAT_LAYOUT"]], check=True, capture_output=True, text=True).stdout.splitlines()
        structures = {
            "leat_connect_options": _library.ConnectOptions,
            "leat_stream_options": _library.StreamOptions,
            "leat_frame": _library.Frame,
            "leat_submit_options": _library.SubmitOptions,
            "leat_answer": _library.Answer,
            "leat_tensor_shape": _library.TensorShape,
            "leat_track_ids_options": _library.TrackIdsOptions,
            "leat_certainty": _library.Certainty,
        }
        arrays = {
            "leat_label": _results.LABEL,
            "leat_detection": _results.DETECTION,
            "leat_class": _results.CLASS,
            "leat_result": _results.RESULT,
            "leat_part": _results.PART,
            "leat_box": _results.BOX,
            "leat_oriented_box": _results.ORIENTED_BOX,
            "leat_keypoint": _results.KEYPOINT,
            "leat_mask": _results.MASK,
            "leat_text": _results.TEXT,
        }
        members = 0
        for structure, member, offset, size in (line.split() for line in lines):
            if structure in structures:
                field = getattr(structures[structure], member)
                self.assertEqual((field.offset, field.size), (int(offset), int(size)), f"{structure}.{member}")
                members += 1
            elif structure in arrays:
                dtype, at = arrays[structure].fields[member][:2]
                self.assertEqual((at, dtype.itemsize), (int(offset), int(size)), f"{structure}.{member}")
                members += 1
            elif structure == "format":
                self.assertEqual(_library.FORMATS[member], int(offset))
            elif structure == "dtype":
                dtype = np.dtype(_library.DTYPES[int(offset)])
                self.assertEqual(dtype.itemsize, int(size), member)
                if member != "bfloat16":
                    self.assertEqual(dtype, np.dtype(member))
        known = sum(len(s._fields_) for s in structures.values()) + sum(len(a.fields) for a in arrays.values())
        self.assertEqual(members, known)


if __name__ == "__main__":
    unittest.main(verbosity=2)
