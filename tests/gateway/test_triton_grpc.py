"""Triton's own gRPC client, unmodified, where there is one, against `leat gateway --grpc`."""

from __future__ import annotations

import os
import queue
import unittest

from gateway import CPU, EMULATED, TENSORS, WithNode, main

try:
    import numpy as np
    import tritonclient.grpc as triton

    missing = "" if os.environ.get("LEAT_GRPC") else "leat-grpc is not built"
except ImportError as error:
    missing = str(error)


@unittest.skipIf(missing, missing)
class TritonGrpc(WithNode):
    text = EMULATED + CPU + TENSORS
    values = {"model": os.environ["LEAT_DETECT"]}
    options = ("--grpc", "127.0.0.1:0", "--shared-memory")

    def test_calls(self) -> None:
        client = triton.InferenceServerClient(f"127.0.0.1:{self.gateway.grpc_port}")
        self.assertTrue(client.is_server_live() and client.is_server_ready() and client.is_model_ready("tensors"))
        self.assertFalse(client.is_model_ready("nobody"))
        self.assertEqual(client.get_server_metadata().name, "leat")
        said = client.get_model_metadata("tensors", "1")
        self.assertEqual(client.get_model_config("tensors").config.max_batch_size, 64)
        self.assertEqual({m.name for m in client.get_model_repository_index().models}, {"echo", "tensors"})
        shape = [1, *said.inputs[0].shape[1:]]
        values = np.random.default_rng(3).random(shape, np.float32)
        given = triton.InferInput(said.inputs[0].name, shape, "FP32")
        given.set_data_from_numpy(values)
        wanted = [triton.InferRequestedOutput(o.name) for o in said.outputs]
        answer = client.infer("tensors", [given], outputs=wanted, request_id="r", timeout=30_000_000, priority=2)
        self.assertEqual(answer.get_response().id, "r")
        first = answer.as_numpy(said.outputs[0].name)
        body = self.gateway.infer(  # the same numbers as by HTTP
            "tensors",
            {
                "inputs": [{"name": said.inputs[0].name, "shape": shape, "datatype": "FP32", "parameters": {"binary_data_size": values.nbytes}}],
                "outputs": [{"name": said.outputs[0].name, "parameters": {"binary_data": True}}],
            },
            values.tobytes(),
        )
        np.testing.assert_array_equal(np.frombuffer(body.body[int(body.fields["inference-header-content-length"]) :], np.float32), first.ravel())

        answers: queue.Queue = queue.Queue()
        for _ in range(3):
            client.async_infer("tensors", [given], lambda result, error: answers.put((result, error)))
        client.start_stream(lambda result, error: answers.put((result, error)))
        for _ in range(3):
            client.async_stream_infer("tensors", [given])
        for _ in range(6):
            result, error = answers.get(timeout=60)
            self.assertIsNone(error)
            np.testing.assert_array_equal(result.as_numpy(said.outputs[0].name), first)
        client.stop_stream()
        self.assertGreater(client.get_inference_statistics("tensors").model_stats[0].inference_count, 6)
        for wrong in (lambda: client.load_model("tensors"), lambda: client.infer("nobody", [given])):
            with self.assertRaises(triton.InferenceServerException):
                wrong()
        client.unregister_system_shared_memory()
        client.close()


if __name__ == "__main__":
    main()
