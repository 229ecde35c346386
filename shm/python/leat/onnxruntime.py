"""ONNX Runtime's session over leatd: one import changed, and several programs share one model and one device.

    import leat.onnxruntime as ort

    session = ort.InferenceSession("detect.onnx")          # the file is compared with what leatd serves, not loaded
    boxes, scores = session.run(None, {"images": batch})   # NumPy in, NumPy out

leatd must serve the model to clients of tensors: an application of one module with `preprocess = "tensors"` and
`postprocess = "tensors"`. It is found by the file's SHA-256, or named: `InferenceSession("detect.onnx",
application="detect")`. The first dimension of every input and output is the batch, of any length: each item is a request
of its own, and leatd puts those of all programs together. What leatd gives up (an overloaded host, a deadline that
cannot be met) raises `Refused` with its reason; what a session here cannot do raises NotImplementedError in one line.
Threads may share a session, as with ONNX Runtime. After leatd was restarted the next call connects anew.
"""

from __future__ import annotations

import hashlib
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Callable, Mapping, Sequence

import numpy as np

from leat._client import Answer, Client, Stream, connect, status
from leat._errors import Disconnected, Error, FormatMismatch, InvalidArgument, NoSuchApplication, RingFull

__all__ = [
    "ExecutionMode",
    "GraphOptimizationLevel",
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "Refused",
    "RunOptions",
    "SessionOptions",
    "get_all_providers",
    "get_available_providers",
    "get_device",
]

PROVIDER = "LeatExecutionProvider"
_NAME_BYTES = 31  # of a part's name in a result: longer ones are cut
_TYPES = {
    "float32": "tensor(float)",
    "float64": "tensor(double)",
    "float16": "tensor(float16)",
    "uint8": "tensor(uint8)",
    "int8": "tensor(int8)",
    "uint16": "tensor(uint16)",
    "int16": "tensor(int16)",
    "uint32": "tensor(uint32)",
    "int32": "tensor(int32)",
    "uint64": "tensor(uint64)",
    "int64": "tensor(int64)",
    "bool": "tensor(bool)",
}


class Refused(Error, RuntimeError):
    """leatd gave a request up: `outcome` ('dropped', 'failed', 'rejected') and `reason` ('expired', 'overload', ...)."""

    code = "refused"

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"{answer.outcome}, {answer.reason}: {answer.reason_text}")
        self.outcome, self.reason = answer.outcome, answer.reason


@dataclass(frozen=True)
class NodeArg:
    """An input or output: its name, ONNX Runtime's word for its type, and its shape, whose first dimension is the batch."""

    name: str
    type: str
    shape: list[int | str]


@dataclass(frozen=True)
class ModelMetadata:
    """What is known of the model; `version` is leatd's, of the model files that it serves."""

    graph_name: str = ""
    graph_description: str = ""
    description: str = ""
    domain: str = ""
    producer_name: str = ""
    version: int = 0
    custom_metadata_map: dict[str, str] = field(default_factory=dict)


class GraphOptimizationLevel:
    """Words of ONNX Runtime that programs set; leatd's workers decide."""

    ORT_DISABLE_ALL, ORT_ENABLE_BASIC, ORT_ENABLE_EXTENDED, ORT_ENABLE_ALL = 0, 1, 2, 99


class ExecutionMode:
    """As GraphOptimizationLevel."""

    ORT_SEQUENTIAL, ORT_PARALLEL = 0, 1


class SessionOptions:
    """Takes what programs set and changes nothing: how a model runs is leatd's configuration. What a session here cannot
    have is refused."""

    def __init__(self) -> None:
        self.log_severity_level = 2
        self.intra_op_num_threads = self.inter_op_num_threads = 0
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.enable_profiling = False
        self.config_entries: dict[str, str] = {}

    def add_session_config_entry(self, key: str, value: str) -> None:
        self.config_entries[key] = value

    def register_custom_ops_library(self, path: str) -> None:
        _cannot("custom operators", "give the library to leatd's executor in its configuration")

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        _cannot("shapes other than the model's", "export the model with the shape that is wanted")


class RunOptions:
    """Takes what programs set and changes nothing."""

    def __init__(self) -> None:
        self.log_severity_level = 2
        self.logid = ""


def get_available_providers() -> list[str]:
    return [PROVIDER]


get_all_providers = get_available_providers


def get_device() -> str:
    """As ONNX Runtime's: a word for where models run. Partitions may be of several kinds; `leat status` lists them."""
    return "LEAT"


def _cannot(what: str, instead: str) -> None:
    raise NotImplementedError(f"leat.onnxruntime has no {what}: {instead}")


def _sha256_of(model: str | os.PathLike[str] | bytes) -> str | None:
    """None: there is no such file."""
    if isinstance(model, (bytes, bytearray)):
        return hashlib.sha256(model).hexdigest()
    sum = hashlib.sha256()
    try:
        with open(model, "rb") as file:
            while block := file.read(1 << 20):
                sum.update(block)
    except (FileNotFoundError, IsADirectoryError):
        return None
    return sum.hexdigest()


def _find(status: dict, model: str | os.PathLike[str] | bytes, application: str | None) -> dict:
    """The application that serves the model, of leatd's status."""
    if application is not None:
        found = [a for a in status["applications"] if a["name"] == application]
        if not found:
            raise NoSuchApplication(f"leatd serves no application '{application}'; `leat status` lists them")
        return found[0]
    sum = _sha256_of(model)
    if sum is None:
        name = os.path.splitext(os.path.basename(os.fspath(model)))[0]  # type: ignore[arg-type]
        found = [a for a in status["applications"] if a["name"] == name]
        if found:
            return found[0]
        raise NoSuchApplication(f"there is no file '{model}', and leatd serves no application '{name}'; `leat status` lists them")
    of_file = [a for a in status["applications"] if any(f["sha256"] == sum for f in a["modules"][0].get("files", []))]
    for_tensors = [a for a in of_file if "inputs" in a["modules"][0]]
    if not of_file:
        shown = "the bytes given" if isinstance(model, (bytes, bytearray)) else f"'{os.fspath(model)}'"
        raise NoSuchApplication(
            f"leatd serves no application of the model {shown} (SHA-256 {sum[:12]}...): add one to its configuration, or name one with application="
        )
    return (for_tensors or of_file)[0]


def _arguments(described: Sequence[dict]) -> list[NodeArg]:
    return [NodeArg(t["name"], _TYPES.get(t["dtype"], f"tensor({t['dtype']})"), ["batch", *t["shape"]]) for t in described]


class _Connection:
    """A client with one stream, and the answers of several threads that wait for their own. Whoever waits takes answers
    for all the others, one thread at a time."""

    def __init__(self, client: Client, stream: Stream) -> None:
        self.client, self.stream = client, stream
        self.lock = threading.Condition()
        self._answers: dict[int, Answer] = {}  # that came, by cookie
        self._forgotten: set[int] = set()  # cookies whose answers nobody waits for any more
        self._taking = False
        self._next_cookie = 1

    def submit(self, tensors: Sequence[np.ndarray], **options: int) -> int:
        """RingFull: every slot is in use."""
        with self.lock:
            with self.stream.acquire() as frame:
                for to, tensor in zip(frame.tensors, tensors):
                    to[...] = tensor
                cookie = self._next_cookie
                self._next_cookie += 1
                frame.submit(cookie=cookie, **options)
            return cookie

    def wait(self, cookies: Mapping[int, Any]) -> tuple[int, Answer] | None:
        """The answer of one of them. None: something changed, perhaps a slot became free."""
        with self.lock:
            if not cookies:  # every slot is other threads', of whom one takes answers
                self.lock.wait(0.01)
                return None
            for cookie in cookies:
                if cookie in self._answers:
                    return cookie, self._answers.pop(cookie)
            if self._taking:
                self.lock.wait()
                return None
            self._taking = True
        answer = None
        try:
            answer = self.client.next_answer()
        finally:
            with self.lock:
                self._taking = False
                if answer is not None and answer.cookie in self._forgotten:
                    self._forgotten.discard(answer.cookie)
                    answer.release()
                elif answer is not None:
                    self._answers[answer.cookie] = answer
                self.lock.notify_all()
        return None

    def done(self, answer: Answer) -> None:
        with self.lock:
            answer.release()
            self.lock.notify_all()  # a slot is free

    def forget(self, cookies: Mapping[int, Any]) -> None:
        """After an error: what still comes is nobody's."""
        with self.lock:
            for cookie in cookies:
                if (answer := self._answers.pop(cookie, None)) is not None:
                    answer.release()
                else:
                    self._forgotten.add(cookie)
            self.lock.notify_all()


class InferenceSession:
    """The part of onnxruntime.InferenceSession that programs use. Beyond it, by name: `application` (of leatd), `socket`,
    `slo_ms` (the objective of each item; the application's if not given), `priority`, and `depth` (items of this session
    waiting or running at once)."""

    def __init__(
        self,
        path_or_bytes: str | os.PathLike[str] | bytes,
        sess_options: SessionOptions | None = None,
        providers: Sequence[Any] | None = None,
        provider_options: Sequence[Mapping[Any, Any]] | None = None,
        *,
        application: str | None = None,
        socket: str | None = None,
        slo_ms: float = 0.0,
        priority: str = "normal",
        depth: int = 8,
        **others: Any,
    ) -> None:
        if others:
            _cannot(f"option '{next(iter(others))}'", "how a model runs is leatd's configuration")
        self._model, self._application, self._socket = path_or_bytes, application, socket
        self._stream_options = {"slo_ns": round(slo_ms * 1e6), "priority": priority, "depth": depth, "slots": depth, "overload": "fifo"}
        self._options = sess_options if sess_options is not None else SessionOptions()
        self._opening = threading.Lock()
        self._connection: _Connection | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._connected()

    # ---- what the model is ----

    def get_inputs(self) -> list[NodeArg]:
        return list(self._inputs)

    def get_outputs(self) -> list[NodeArg]:
        return list(self._outputs)

    def get_overridable_initializers(self) -> list[NodeArg]:
        return []

    def get_modelmeta(self) -> ModelMetadata:
        return ModelMetadata(graph_name=self._name, version=self._version)

    def get_providers(self) -> list[str]:
        return [PROVIDER]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        return {PROVIDER: {"application": self._name}}

    def set_providers(self, providers: Sequence[Any] | None = None, provider_options: Any = None) -> None:
        """Changes nothing: which partitions run the model is leatd's configuration."""

    def get_session_options(self) -> SessionOptions:
        return self._options

    def disable_fallback(self) -> None:
        """There is none."""

    def enable_fallback(self) -> None:
        """There is none."""

    # ---- running it ----

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
    ) -> list[np.ndarray]:
        """The outputs named (None: all of them), in that order, as arrays of the caller's own."""
        connection = self._connected()
        wanted = self._wanted(output_names)
        tensors = self._checked(input_feed)
        items = len(tensors[0])
        rows: list[list[np.ndarray]] = [[] for _ in range(items)]
        in_flight: dict[int, int] = {}  # item by cookie
        sent = 0
        try:
            while sent < items or in_flight:
                try:
                    while sent < items:
                        in_flight[connection.submit([t[sent] for t in tensors])] = sent
                        sent += 1
                except RingFull:
                    pass
                if (came := connection.wait(in_flight)) is not None:
                    cookie, answer = came
                    try:
                        rows[in_flight.pop(cookie)] = self._outputs_of(answer, wanted)
                    finally:
                        connection.done(answer)
        except Disconnected:
            self._lost(connection)
            raise
        finally:
            connection.forget(in_flight)
        return [self._together(wanted[o], [row[o] for row in rows]) for o in range(len(wanted))]

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[list[np.ndarray], Any, str], None],
        user_data: Any,
        run_options: RunOptions | None = None,
    ) -> None:
        """Calls callback(results, user_data, error) from another thread; error is empty, or one line and results []."""
        with self._opening:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._stream_options["depth"], "leat-onnxruntime")

        def one() -> None:
            results, error = [], ""
            try:
                results = self.run(output_names, input_feed, run_options)
            except Exception as problem:  # noqa: BLE001: handed over, whatever it is
                error = str(problem) or type(problem).__name__
            callback(results, user_data, error)

        self._pool.submit(one)

    # ---- what cannot be had ----

    def io_binding(self) -> Any:
        _cannot("io_binding", "use run(); nothing but the slot in shared memory is written")

    def run_with_iobinding(self, iobinding: Any, run_options: Any = None) -> None:
        _cannot("run_with_iobinding", "use run()")

    def run_with_ort_values(self, output_names: Any, input_dict_ort_values: Any, run_options: Any = None) -> Any:
        _cannot("run_with_ort_values", "use run() with NumPy arrays")

    def end_profiling(self) -> str:
        _cannot("profiling", "`leat top` and `leat profile` show where time goes")
        return ""

    # ---- within ----

    def _connected(self) -> _Connection:
        with self._opening:
            if self._connection is None:
                self._connection = self._connect()
            return self._connection

    def _connect(self) -> _Connection:
        client = connect(self._socket)
        served = _find(status(self._socket), self._model, self._application)
        module = served["modules"][0]
        if len(served["modules"]) != 1 or "inputs" not in module:
            raise FormatMismatch(
                f"application '{served['name']}' does not take tensors for one model; give it a single module with "
                'preprocess = "tensors" and postprocess = "tensors"'
            )
        outputs = [o for o in module.get("outputs", []) if o["kind"] == "tensor"]
        if not outputs:
            raise FormatMismatch(f"application '{served['name']}' does not give its outputs as they are; set postprocess = \"tensors\"")
        self._name = served["name"]
        self._version = int(served.get("model_version") or "0", 16)
        self._inputs, self._outputs = _arguments(module["inputs"]), _arguments(outputs)
        self._specs = [(np.dtype(t["dtype"]), tuple(t["shape"])) for t in module["inputs"]]
        return _Connection(client, client.open_stream(self._name, "tensors", tensors=self._specs, **self._stream_options))

    def _lost(self, connection: _Connection) -> None:
        with self._opening:
            if self._connection is connection:
                self._connection = None

    def _wanted(self, names: Sequence[str] | None) -> list[str]:
        known = [o.name for o in self._outputs]
        if names is None or not len(names):
            return known
        wanted = [name if name in known else name.encode()[:_NAME_BYTES].decode(errors="ignore") for name in names]
        for name in wanted:
            if name not in known:
                raise InvalidArgument(f"Invalid output name: {name}; there are {', '.join(known)}")
        return wanted

    def _checked(self, feed: Mapping[str, Any]) -> list[np.ndarray]:
        """The inputs in the model's order, all of one length."""
        known = [i.name for i in self._inputs]
        for name in feed:
            if name not in known:
                raise InvalidArgument(f"Invalid input name: {name}; there are {', '.join(known)}")
        missing = [name for name in known if name not in feed]
        if missing:
            raise InvalidArgument(f"Required inputs ({missing}) are missing from input feed ({list(feed)}).")
        tensors = []
        for argument, (dtype, shape) in zip(self._inputs, self._specs):
            tensor = np.asarray(feed[argument.name])
            if tensor.dtype != dtype:
                actual = _TYPES.get(tensor.dtype.name, tensor.dtype.name)
                raise InvalidArgument(f"Unexpected input data type of {argument.name}. Actual: ({actual}) , expected: ({argument.type})")
            if tensor.ndim != len(shape) + 1 or tensor.shape[1:] != shape:
                raise InvalidArgument(
                    f"Got invalid dimensions for input: {argument.name} Got: {list(tensor.shape)} Expected: {argument.shape}; "
                    "leatd serves a model in one shape, in batches of any length"
                )
            tensors.append(tensor)
        if len({len(t) for t in tensors}) != 1 or not len(tensors[0]):
            raise InvalidArgument(f"the inputs' batches differ or are empty: {[len(t) for t in tensors]}")
        return tensors

    def _outputs_of(self, answer: Answer, wanted: list[str]) -> list[np.ndarray]:
        if answer.outcome not in ("completed", "late") or answer.result is None:
            raise Refused(answer)
        parts = {p.name: p.array for p in answer.result.parts if p.kind == "tensor"}
        return [np.array(parts[name]) for name in wanted]  # copies: the slot goes back

    @staticmethod
    def _together(name: str, rows: list[np.ndarray]) -> np.ndarray:
        if len({row.shape for row in rows}) != 1:
            raise NotImplementedError(f"output '{name}' has another shape for each item: run them one by one")
        return rows[0][np.newaxis] if len(rows) == 1 else np.stack(rows)
