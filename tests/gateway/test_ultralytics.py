"""Ultralytics' client of Triton, unmodified, against `leat gateway`: the file ultralytics/utils/triton.py out of the package, or of a
checkout that LEAT_ULTRALYTICS names (tried with commit 02121a52). Skipped where there is none, or no tritonclient."""

from __future__ import annotations

import importlib.util
import os
import types
import unittest
from pathlib import Path

from gateway import CPU, EMULATED, TENSORS, WithNode, main

try:
    import numpy as np
    import tritonclient.http as triton

    missing = ""
except ImportError as error:
    missing = str(error)


def wrapper() -> Path | None:
    """Where it lies; the package itself is not imported, for it wants torch."""
    places = [os.environ["LEAT_ULTRALYTICS"] + "/ultralytics"] if "LEAT_ULTRALYTICS" in os.environ else []
    spec = importlib.util.find_spec("ultralytics")
    places += list(spec.submodule_search_locations or []) if spec else []
    return next((file for place in places if (file := Path(place, "utils/triton.py")).exists()), None)


def loaded(file: Path) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location("ultralytics_triton", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@unittest.skipIf(missing, missing)
@unittest.skipUnless(wrapper(), "there is no ultralytics/utils/triton.py")
class Ultralytics(WithNode):
    text = EMULATED + CPU + TENSORS
    values = {"model": os.environ["LEAT_DETECT"]}

    def test_the_model_by_its_url(self) -> None:
        model = loaded(wrapper()).TritonRemoteModel(f"http://{self.gateway.address}/tensors")
        said = self.gateway.get("/v2/models/tensors").json()
        (tensor,) = said["inputs"]
        self.assertEqual((model.input_names, model.input_formats), ([tensor["name"]], ["TYPE_FP32"]))
        self.assertEqual(model.output_names, sorted(o["name"] for o in said["outputs"]))
        self.assertIsInstance(model.metadata["names"], dict)
        shape = [1, *tensor["shape"][1:]]
        values = np.random.default_rng(5).random(shape, np.float32)
        answers = model(values)
        client = triton.InferenceServerClient(self.gateway.address)
        given = triton.InferInput(tensor["name"], shape, "FP32")
        given.set_data_from_numpy(values)
        expected = client.infer("tensors", [given])
        for name, answer in zip(model.output_names, answers, strict=True):
            np.testing.assert_array_equal(answer, expected.as_numpy(name))
        client.close()


if __name__ == "__main__":
    main()
