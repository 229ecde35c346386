"""Triton's own HTTP client, unmodified, where there is one: the calls of its contract against `leat gateway`."""

from __future__ import annotations

import os
import unittest

from gateway import CPU, EMULATED, PICTURES, TENSORS, WithNode, main

try:
    import numpy as np
    import tritonclient.http as triton

    missing = ""
except ImportError as error:
    missing = str(error)


@unittest.skipIf(missing, missing)
class Triton(WithNode):
    text = EMULATED + CPU + TENSORS + PICTURES
    values = {"model": os.environ["LEAT_DETECT"]}

    def test_calls(self) -> None:
        said = self.gateway.get("/v2/models/tensors").json()
        (tensor,), outputs = said["inputs"], said["outputs"]
        client = triton.InferenceServerClient(self.gateway.address)
        self.assertTrue(client.is_server_live() and client.is_server_ready() and client.is_model_ready("tensors"))
        self.assertEqual(client.get_server_metadata()["name"], "leat")
        self.assertEqual(client.get_model_metadata("tensors", "1")["inputs"], [tensor])
        self.assertEqual(client.get_model_config("tensors")["max_batch_size"], 64)
        self.assertEqual({m["name"] for m in client.get_model_repository_index()}, {"echo", "tensors", "pictures"})
        shape = [1, *tensor["shape"][1:]]
        values = np.random.default_rng(3).random(shape, np.float32)
        given = triton.InferInput(tensor["name"], shape, "FP32")
        answers = []
        for binary in (True, False):
            given.set_data_from_numpy(values, binary_data=binary)
            wanted = [triton.InferRequestedOutput(o["name"], binary_data=binary) for o in outputs]
            answer = client.infer("tensors", [given], outputs=wanted, request_id="r", timeout=30_000_000, priority=2)
            self.assertEqual(answer.get_response()["id"], "r")
            answers.append(answer.as_numpy(outputs[0]["name"]))
        np.testing.assert_array_equal(*answers)
        given.set_data_from_numpy(values)
        waiting = [client.async_infer("tensors", [given]) for _ in range(3)]
        for one in waiting:
            np.testing.assert_array_equal(one.get_result().as_numpy(outputs[0]["name"]), answers[0])
        several = np.concatenate([values, values[:, :, ::-1], values])
        batch = triton.InferInput(tensor["name"], several.shape, "FP32")
        batch.set_data_from_numpy(several)
        together = client.infer("tensors", [batch]).as_numpy(outputs[0]["name"])
        self.assertEqual(together.shape, (3, *answers[0].shape[1:]))
        np.testing.assert_array_equal(together[[0, 2]], np.concatenate([answers[0]] * 2))
        self.assertGreater(client.get_inference_statistics("tensors")["model_stats"][0]["inference_count"], 0)
        with self.assertRaises(triton.InferenceServerException if hasattr(triton, "InferenceServerException") else Exception):
            client.load_model("tensors")
        client.unregister_system_shared_memory()
        client.close()


if __name__ == "__main__":
    main()
