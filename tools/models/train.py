#!/usr/bin/python3
"""Trains the two models of the application `shapes` on leat-scene's frames and exports them as ONNX.

    tools/models/train.py --scene build/tools/scene/leat-scene [--model detect|classify] [--out tools/models/shapes]

detect:   [n, 3, 192, 320] -> maps [n, 5, 24, 40]: per cell of 8 x 8 pixels a logit, then the distances from the cell's
          centre to the box's left, top, right and bottom sides, in cells.
classify: [n, 3, 32, 32]   -> shape [n, 5], colour [n, 6], logits.
Inputs are (pixel / 255 - 0.5) / 0.5, R G B; detect's are letterboxed from the frame, classify's are cut out around a box.

Half of the frames go through H.264 first. Seeded; the seeds of the tests are not used here. Needs python3-torch,
python3-numpy and ffmpeg. The work is cut into runs: --minutes ends a run after a checkpoint in --work, and the same
command goes on from there. The committed files are checkpoints: detect after 2051 of 3000 steps, classify after 2910 of 9240.
"""
import argparse
import json
import os
import subprocess
import sys
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

WIDTH, HEIGHT = 1280, 720
INPUT_W, INPUT_H, PAD_TOP, STRIDE = 320, 192, 6, 8
SCALE = WIDTH / INPUT_W
CROP, MARGIN = 32, 0.1
SHAPES = ["circle", "square", "triangle", "star", "cross"]
COLOURS = ["red", "green", "blue", "yellow", "magenta", "cyan"]
TRAIN_SEED, HELD_OUT_SEED = 4001, 4002  # the latter only to watch the training


# ---- frames ----
def frames(scene, seed, cameras, per_camera, every, h264):
    """Yields (picture [720, 1280, 3] uint8, list of truth objects)."""
    truth_path = f"/tmp/leat-train-{os.getpid()}.jsonl"
    command = [scene, "--seed", str(seed), "--cameras", str(cameras), "--frames", str(per_camera), "--every", str(every), "--truth", truth_path]
    raw = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{WIDTH}x{HEIGHT}", "-r", "30"]
    source = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    pipe, children = source.stdout, [source]
    if h264:
        encode = ["ffmpeg", "-loglevel", "error", *raw, "-i", "-", "-c:v", "libx264", "-preset", "veryfast", "-crf", "26", "-pix_fmt", "yuv420p", "-f", "h264", "-"]
        decode = ["ffmpeg", "-loglevel", "error", "-f", "h264", "-i", "-", "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
        for words in (encode, decode):
            children.append(subprocess.Popen(words, stdin=pipe, stdout=subprocess.PIPE))
            pipe = children[-1].stdout
    pictures = cameras * per_camera
    with open_when_there(truth_path) as truth:
        for _ in range(pictures):
            data = pipe.read(WIDTH * HEIGHT * 3)
            if len(data) != WIDTH * HEIGHT * 3:
                sys.exit("train.py: the frames ended early; run leat-scene and ffmpeg by hand to see why")
            line = next_line(truth)
            yield np.frombuffer(data, np.uint8).reshape(HEIGHT, WIDTH, 3), json.loads(line)["objects"]
    os.unlink(truth_path)
    for child in children:
        child.wait()


def open_when_there(path):
    while not os.path.exists(path):
        time.sleep(0.01)
    return open(path)


def next_line(file):
    line = ""
    while not line.endswith("\n"):
        part = file.readline()
        line += part
        if not part:
            time.sleep(0.01)
    return line


def sample(picture, box, width, height):
    """Bilinear with pixel centres, two taps a direction: what engine/exec/picture/preprocess does."""
    x0, y0, x1, y1 = box

    def taps(low, high, count, size):
        at = np.clip(low + (np.arange(count) + 0.5) * (high - low) / count - 0.5, 0, size - 1)
        first = np.minimum(at.astype(np.int64), size - 2)
        return first, (at - first).astype(np.float32)

    column, fx = taps(x0, x1, width, picture.shape[1])
    row, fy = taps(y0, y1, height, picture.shape[0])
    fx, fy = fx[None, :, None], fy[:, None, None]
    a, b = picture[row[:, None], column], picture[row[:, None], column + 1]
    c, d = picture[row[:, None] + 1, column], picture[row[:, None] + 1, column + 1]
    return ((a * (1 - fx) + b * fx) * (1 - fy) + (c * (1 - fx) + d * fx) * fy + 0.5).astype(np.uint8)


def crop_box(box):
    x0, y0, x1, y1 = box
    mx, my = MARGIN * (x1 - x0), MARGIN * (y1 - y0)
    return max(0, x0 - mx), max(0, y0 - my), min(WIDTH, x1 + mx), min(HEIGHT, y1 + my)


def collect(args, name, seed, cameras, per_camera):
    """What `name` needs of: small pictures, their objects (input pixels: x0 y0 x1 y1 ignore, nearest last), crops and their labels."""
    path = os.path.join(args.work, f"frames-{seed}-{cameras}.npz")
    if not os.path.exists(path):
        collect_all(args, path, seed, cameras, per_camera)
    with np.load(path, allow_pickle=True) as data:
        return {key: data[key] for key in KEYS[name]}


def collect_all(args, path, seed, cameras, per_camera):
    random = np.random.default_rng(seed)
    pictures, objects, crops, labels = [], [], [], []
    for part, h264 in ((0, False), (1, True)):
        for picture, truth in frames(args.scene, seed + 10 * part, cameras // 2, per_camera, 23, h264):
            pictures.append(sample(picture, (0, 0, WIDTH, HEIGHT), INPUT_W, INPUT_H - 2 * PAD_TOP))
            objects.append(np.array([[*np.array(o["box"]) / SCALE + [0, PAD_TOP, 0, PAD_TOP], o["ignore"]] for o in truth], np.float32).reshape(-1, 5))
            for o in truth:
                if o["ignore"]:
                    continue
                x0, y0, x1, y1 = o["box"]
                w, h = x1 - x0, y1 - y0
                for spread in (0.03, 0.09):  # a detector's box is not exact, and less so where another object hides a part
                    noise = np.clip(random.normal(0, spread, 4), -0.25, 0.25) * [w, h, w, h]
                    crops.append(sample(picture, crop_box(np.array(o["box"]) + noise), CROP, CROP))
                    labels.append((SHAPES.index(o["shape"]), COLOURS.index(o["colour"])))
            if len(pictures) % 100 == 0:
                print(f"frames: {len(pictures)} of {2 * (cameras // 2) * per_camera}", file=sys.stderr, flush=True)
    ragged = np.empty(len(objects), object)
    ragged[:] = objects
    np.savez(path + ".part.npz", pictures=np.stack(pictures), objects=ragged, crops=np.stack(crops), labels=np.array(labels, np.int64))
    os.rename(path + ".part.npz", path)


# ---- models ----
def block(inputs, outputs, stride=1, dilation=1):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, stride, dilation, dilation, bias=False), nn.BatchNorm2d(outputs), nn.ReLU())


class Detect(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(block(3, 12, 2), block(12, 24, 2), block(24, 40, 2), block(40, 40), block(40, 40, 1, 2), block(40, 40))
        self.head = nn.Conv2d(40, 5, 1)
        with torch.no_grad():
            self.head.bias[:] = torch.tensor([-3.0, 1.5, 1.5, 1.5, 1.5])

    def forward(self, x):
        return self.head(self.trunk(x))


class Classify(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(block(3, 16, 2), block(16, 32, 2), block(32, 48), block(48, 64, 2), nn.Flatten(), nn.Linear(64 * 16, 48), nn.ReLU())
        self.shape, self.colour = nn.Linear(48, len(SHAPES)), nn.Linear(48, len(COLOURS))

    def forward(self, x):
        x = self.trunk(x)
        return self.shape(x), self.colour(x)


def normalised(pictures):
    return torch.from_numpy(pictures).permute(0, 3, 1, 2).float().div_(127.5).sub_(1)


# ---- detect ----
def targets(objects):
    """Per cell: 1 positive, 0 negative, -1 not counted; and the box it answers for. Nearer objects overrule farther ones."""
    rows, columns = INPUT_H // STRIDE, INPUT_W // STRIDE
    kind, boxes = np.zeros((rows, columns), np.int8), np.zeros((4, rows, columns), np.float32)
    cy, cx = np.mgrid[0:rows, 0:columns] * STRIDE + STRIDE / 2
    for x0, y0, x1, y1, ignore in objects:
        mx, my = (x0 + x1) / 2, (y0 + y1) / 2
        near = (abs(cx - mx) <= max(0.28 * (x1 - x0), 0.51 * STRIDE)) & (abs(cy - my) <= max(0.28 * (y1 - y0), 0.51 * STRIDE))
        kind[near] = -1 if ignore else 1
        boxes[:, near] = np.array([x0, y0, x1, y1], np.float32)[:, None]
    return kind, boxes


CENTRES = torch.from_numpy(np.stack((np.mgrid[0:INPUT_H // STRIDE, 0:INPUT_W // STRIDE][::-1])).astype(np.float32) * STRIDE + STRIDE / 2)


def boxes_of(maps):
    reach = maps[:, 1:] * STRIDE
    return torch.cat((CENTRES - reach[:, :2], CENTRES + reach[:, 2:]), 1)


def overlap(a, b):
    """Intersection over union and generalised IoU of boxes along dimension 1."""
    low, high = torch.maximum(a[:, :2], b[:, :2]), torch.minimum(a[:, 2:], b[:, 2:])
    both = (high - low).clamp(min=0).prod(1)
    union = (a[:, 2:] - a[:, :2]).clamp(min=0).prod(1) + (b[:, 2:] - b[:, :2]).prod(1) - both
    hull = (torch.maximum(a[:, 2:], b[:, 2:]) - torch.minimum(a[:, :2], b[:, :2])).prod(1)
    iou = both / union.clamp(min=1e-6)
    return iou, iou - (hull - union) / hull.clamp(min=1e-6)


def detect_loss(model, batch):
    pictures, kind, truth = batch
    maps = model(pictures)
    iou, giou = overlap(boxes_of(maps), truth)
    positive, counted = kind == 1, kind >= 0
    wanted = torch.where(positive, iou.detach().clamp(0.1, 1), torch.zeros(()))
    logit = maps[:, 0]
    chance = logit.detach().sigmoid()
    weight = torch.where(positive, torch.ones(()), 0.75 * chance ** 2)  # of the many easy negatives little
    found = (F.binary_cross_entropy_with_logits(logit, wanted, reduction="none") * weight)[counted].sum()
    count = positive.sum().clamp(min=1)
    return (found + 2 * (1 - giou)[positive].sum()) / count


def detect_batch(data, index, random):
    small = data["pictures"][index]
    pictures = np.full((len(index), INPUT_H, INPUT_W, 3), 127, np.uint8)
    pictures[:, PAD_TOP:INPUT_H - PAD_TOP] = small
    kinds, boxes = [], []
    for k, i in enumerate(index):
        objects = data["objects"][i].copy()
        if random is not None and random.random() < 0.5:
            pictures[k] = pictures[k, :, ::-1]
            objects[:, [0, 2]] = INPUT_W - objects[:, [2, 0]]
        kind, box = targets(objects)
        kinds.append(kind)
        boxes.append(box)
    return jitter(normalised(pictures), random), torch.from_numpy(np.stack(kinds)), torch.from_numpy(np.stack(boxes))


def jitter(x, random):
    if random is None:
        return x
    gain = torch.from_numpy(random.uniform(0.85, 1.15, (len(x), 1, 1, 1)).astype(np.float32))
    shift = torch.from_numpy(random.uniform(-0.1, 0.1, (len(x), 1, 1, 1)).astype(np.float32))
    return (x * gain + shift).clamp(-1, 1) if random.random() < 0.7 else x


def detect_quality(model, data):
    """Average precision at 0.5 over all objects as one class (tools/scene/tracking/accuracy.h states the definition)."""
    scored, count = [], 0
    for start in range(0, len(data["pictures"]), 32):
        index = np.arange(start, min(start + 32, len(data["pictures"])))
        with torch.no_grad():
            maps = model(detect_batch(data, index, None)[0])
        boxes, score = boxes_of(maps).flatten(2).permute(0, 2, 1).numpy(), maps[:, 0].sigmoid().flatten(1).numpy()
        for k, i in enumerate(index):
            truth = data["objects"][i]
            count += int((truth[:, 4] == 0).sum())
            scored += matched(suppressed(boxes[k], score[k]), truth)
    scored.sort(key=lambda pair: -pair[0])
    right = np.cumsum([r for _, r in scored])
    precision = np.maximum.accumulate((right / np.arange(1, len(right) + 1))[::-1])[::-1]
    return float(sum(p for p, (_, r) in zip(precision, scored) if r) / max(count, 1))


def iou_one(box, boxes):
    low, high = np.maximum(box[:2], boxes[:, :2]), np.minimum(box[2:4], boxes[:, 2:4])
    both = np.clip(high - low, 0, None).prod(1)
    return both / ((box[2:4] - box[:2]).prod() + (boxes[:, 2:4] - boxes[:, :2]).prod(1) - both + 1e-9), both / ((box[2:4] - box[:2]).prod() + 1e-9)


def suppressed(boxes, score, least=0.05, most=0.6):
    order = [i for i in np.argsort(-score) if score[i] >= least]
    kept = []
    for i in order:
        if not kept or iou_one(boxes[i], boxes[kept])[0].max() <= most:
            kept.append(i)
    return [(score[i], boxes[i]) for i in kept]


def matched(found, truth):
    out, taken = [], set()
    for score, box in found:
        iou, inside = iou_one(box, truth[:, :4]) if len(truth) else (np.zeros(0), np.zeros(0))
        best = max(((iou[i], i) for i in range(len(truth)) if not truth[i, 4] and i not in taken), default=(0, -1))
        if best[0] >= 0.5:
            taken.add(best[1])
            out.append((score, True))
        elif not any(truth[i, 4] and inside[i] >= 0.5 for i in range(len(truth))):
            out.append((score, False))
    return out


# ---- classify ----
def classify_batch(data, index, random):
    crops = data["crops"][index]
    if random is not None and random.random() < 0.5:
        crops = crops[:, :, ::-1].copy()
    if random is not None and random.random() < 0.5:
        crops = crops[:, ::-1].copy()
    return jitter(normalised(crops), random), torch.from_numpy(data["labels"][index])


def classify_loss(model, batch):
    shape, colour = model(batch[0])
    return F.cross_entropy(shape, batch[1][:, 0], label_smoothing=0.02) + F.cross_entropy(colour, batch[1][:, 1], label_smoothing=0.02)


def classify_quality(model, data):
    with torch.no_grad():
        shape, colour = model(classify_batch(data, np.arange(len(data["crops"])), None)[0])
    labels = data["labels"]
    return float(((shape.argmax(1).numpy() == labels[:, 0]) & (colour.argmax(1).numpy() == labels[:, 1])).mean())


KEYS = {"detect": ["pictures", "objects"], "classify": ["crops", "labels"]}
JOBS = {
    # model, loss, batch, quality, items, batch size, epochs, rate, input, outputs
    "detect": (Detect, detect_loss, detect_batch, detect_quality, "pictures", 16, 12, 4e-3, (3, INPUT_H, INPUT_W), ["maps"]),
    "classify": (Classify, classify_loss, classify_batch, classify_quality, "crops", 64, 8, 3e-3, (3, CROP, CROP), ["shape", "colour"]),
}


def train(name, args):
    """Returns whether the training is complete."""
    data, held_out = collect(args, name, TRAIN_SEED, args.cameras, 8), collect(args, name, HELD_OUT_SEED, 30, 8)
    deadline = time.time() + 60 * args.minutes
    model_type, loss_of, batch_of, quality_of, items, size, epochs, rate, shape, outputs = JOBS[name]
    torch.manual_seed(1)
    model = model_type()
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=1e-3)
    count = len(data[items])
    steps_each = count // size
    total, step = epochs * steps_each, 0
    checkpoint = os.path.join(args.work, f"{name}.pt")
    if os.path.exists(checkpoint):
        state = torch.load(checkpoint)
        model.load_state_dict(state["model"])
        optimiser.load_state_dict(state["optimiser"])
        step = state["step"]
    average = None
    while step < total and time.time() < deadline:
        epoch, within = divmod(step, steps_each)
        order = np.random.default_rng(1000 + epoch).permutation(count)
        index = order[within * size:(within + 1) * size]
        part = step / total
        for group in optimiser.param_groups:
            group["lr"] = rate * min(1, (step + 1) / 200) * (0.5 * (1 + np.cos(np.pi * part)) + 0.005)
        model.train()
        loss = loss_of(model, batch_of(data, index, np.random.default_rng(7919 * step + 1)))
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5)
        optimiser.step()
        average = loss.item() if average is None else 0.98 * average + 0.02 * loss.item()
        step += 1
        if step % 100 == 0 or step == total:
            print(f"{name}: step {step} of {total}, loss {average:.4f}", file=sys.stderr, flush=True)
    torch.save(dict(model=model.state_dict(), optimiser=optimiser.state_dict(), step=step), checkpoint)
    model.eval()
    print(f"{name}: step {step} of {total}, held-out quality {quality_of(model, held_out):.4f}", file=sys.stderr, flush=True)
    path = os.path.join(args.out, f"{name}.onnx")
    torch.onnx.export(model, torch.zeros(1, *shape), path, opset_version=13, input_names=["input"], output_names=outputs,
                      dynamic_axes={k: {0: "n"} for k in ["input", *outputs]})
    print(f"{name}: {path}, {os.path.getsize(path)} bytes", file=sys.stderr)
    return step >= total


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scene", required=True, help="the leat-scene program")
    parser.add_argument("--model", choices=sorted(JOBS), action="append", help="which to train (default: both)")
    parser.add_argument("--out", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "shapes"), help="where the ONNX files go")
    parser.add_argument("--work", default="/tmp/leat-train", help="frames and checkpoints")
    parser.add_argument("--minutes", type=float, default=1e9, help="end this run after so long; the same command goes on")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="1 where the processors are shared with other work")
    parser.add_argument("--cameras", type=int, default=500, help="streets to train on, 8 frames of each")
    args = parser.parse_args()
    os.makedirs(args.work, exist_ok=True)
    os.makedirs(args.out, exist_ok=True)
    torch.set_num_threads(args.threads)
    complete = [train(name, args) for name in args.model or sorted(JOBS)]
    sys.exit(0 if all(complete) else 3)


if __name__ == "__main__":
    main()
