#!/usr/bin/env python3
"""torch_times.py FOLDER/NAME.json [--half] [--batches N,N,...] [--runs N]: the structure that leat-gpu-check wrote, by PyTorch:
channels-last, TF32 off, replayed as a CUDA graph; microseconds of a batch by the device's events. One JSON object. Exit status 3:
there is no PyTorch with a GPU here."""
import argparse
import array
import json
import sys

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    torch = None


def load(path, half):
    with open(path) as file:
        structure = json.load(file)
    weights = array.array("f")
    with open(path[:-len("json")] + "bin", "rb") as file:
        weights.frombytes(file.read())
    everything = torch.frombuffer(weights, dtype=torch.float32)
    kind = torch.float16 if half else torch.float32
    at = 0
    for layer in structure["layers"]:
        shape = {"conv": (layer["out"], layer["channels_in"] // layer["groups"], layer["kernel"], layer["kernel"]),
                 "dense": (layer["out"], layer["channels_in"]), "norm": (1, layer["out"], 1, 1)}.get(layer["op"])
        for key, count, form in (("weight", layer["weights"], shape), ("bias", layer["biases"], None)):
            if count == 0:
                continue
            tensor = everything[at:at + count].clone()
            at += count
            if form is not None:
                tensor = tensor.reshape(form)
            elif layer["op"] == "norm":
                tensor = tensor.reshape(1, -1, 1, 1)
            tensor = tensor.to("cuda", kind)
            layer[key] = tensor.to(memory_format=torch.channels_last) if tensor.dim() == 4 else tensor
    return structure, kind


def run(structure, picture, kind):
    made = []
    x = picture.to(kind)
    for layer in structure["layers"]:
        inputs = [x if i < 0 else made[i] for i in layer["in"]]
        op = layer["op"]
        if op == "conv":
            y = F.conv2d(inputs[0], layer["weight"], layer["bias"], layer["stride"], layer["pad"], 1, layer["groups"])
        elif op == "dense":
            y = F.linear(inputs[0], layer["weight"], layer["bias"])
        elif op == "norm":
            y = inputs[0] * layer["weight"] + layer["bias"]
        elif op == "add":
            y = inputs[0] + inputs[1]
        elif op == "concat":
            y = torch.cat(inputs, 1)
        elif op == "max":
            y = F.max_pool2d(inputs[0], layer["kernel"], layer["stride"], layer["pad"])
        elif op == "mean":
            y = F.avg_pool2d(inputs[0], layer["kernel"], layer["stride"], layer["pad"])
        elif op == "global":
            y = F.adaptive_avg_pool2d(inputs[0], 1).flatten(1)
        else:
            raise ValueError(f"no layer '{op}'")
        if layer["act"] == "relu":
            y = F.relu(y)
        elif layer["act"] == "relu6":
            y = F.relu6(y)
        made.append(y)
    return made[-1].float()


def times(structure, kind, batch, runs):
    picture = torch.randn(batch, 3, structure["picture"], structure["picture"], device="cuda").to(
        memory_format=torch.channels_last)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            run(structure, picture, kind)
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run(structure, picture, kind)
    values = []
    for i in range(-2, runs):
        first, second = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        first.record()
        graph.replay()
        second.record()
        second.synchronize()
        if i >= 0:
            values.append(first.elapsed_time(second) * 1000)
    values.sort()
    return {"median": values[len(values) // 2], "least": values[0], "most": values[-1], "n": len(values), "unit": "us"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("structure")
    parser.add_argument("--half", action="store_true")
    parser.add_argument("--batches", default="1,4,16,64")
    parser.add_argument("--runs", type=int, default=20)
    arguments = parser.parse_args()
    if torch is None or not torch.cuda.is_available():
        print("torch_times.py: there is no PyTorch with a GPU here", file=sys.stderr)
        return 3
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    with torch.inference_mode():
        structure, kind = load(arguments.structure, arguments.half)
        figures = {f"torch_batch_{b}": times(structure, kind, int(b), arguments.runs) for b in arguments.batches.split(",")}
    print(json.dumps({"torch": torch.__version__, "figures": figures}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
