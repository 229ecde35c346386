"""What each public model's authors make of a picture: prepared as their code prepares it, run by ONNX Runtime alone, and
decoded here, without a line of Leat's. An answer is a dict of what the model has: boxes (n, 5: corners and score), points
(n, 2), segments (n, 5), classes (pairs of class and score, best first), heads (the same, one an output), text, map (h, w,
0 to 1) and arrays (by the name of the output)."""

import numpy as np

_MEAN, _STD = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])


def resized(picture: np.ndarray, width: int, height: int) -> np.ndarray:
    """Bilinear, half pixels at the edges, as OpenCV's INTER_LINEAR."""

    def taps(count: int, size: int):
        at = np.clip((np.arange(count) + 0.5) * size / count - 0.5, 0, size - 1)
        first = np.minimum(at.astype(int), size - 1)
        return first, np.minimum(first + 1, size - 1), at - first

    y0, y1, fy = taps(height, picture.shape[0])
    x0, x1, fx = taps(width, picture.shape[1])
    p = picture.astype(np.float64)
    rows = p[y0] * (1 - fy)[:, None, None] + p[y1] * fy[:, None, None]
    return rows[:, x0] * (1 - fx)[None, :, None] + rows[:, x1] * fx[None, :, None]


def planes(pixels: np.ndarray) -> np.ndarray:
    return pixels.transpose(2, 0, 1)[None].astype(np.float32)


def gray(picture: np.ndarray) -> np.ndarray:
    return (picture @ np.array([0.299, 0.587, 0.114]))[..., None]


def softmax(values: np.ndarray) -> np.ndarray:
    e = np.exp(values.astype(np.float64) - values.max())
    return e / e.sum()


def best(scores: np.ndarray) -> list[tuple[int, float]]:
    return [(int(i), float(scores[i])) for i in np.argsort(-scores, kind="stable")]


def overlap(a: np.ndarray, b: np.ndarray) -> float:
    w = min(a[2], b[2]) - max(a[0], b[0])
    h = min(a[3], b[3]) - max(a[1], b[1])
    both = max(w, 0) * max(h, 0)
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


def kept(boxes: np.ndarray, most: float) -> list[int]:
    """Non-maximum suppression; indexes, best first."""
    out: list[int] = []
    for i in np.argsort(-boxes[:, 4], kind="stable"):
        if all(overlap(boxes[i], boxes[j]) <= most for j in out):
            out.append(int(i))
    return out


def regions(mask: np.ndarray) -> list[np.ndarray]:
    """Cells that touch, also at corners: (n, 2) of x, y."""
    seen, out = ~mask, []
    for y, x in zip(*np.nonzero(mask)):
        if seen[y, x]:
            continue
        cells, todo = [], [(y, x)]
        seen[y, x] = True
        while todo:
            cy, cx = todo.pop()
            cells.append((cx, cy))
            for ny in range(max(cy - 1, 0), min(cy + 2, mask.shape[0])):
                for nx in range(max(cx - 1, 0), min(cx + 2, mask.shape[1])):
                    if not seen[ny, nx]:
                        seen[ny, nx] = True
                        todo.append((ny, nx))
        out.append(np.array(cells, float))
    return out


def smallest_rectangle(points: np.ndarray):
    """Of all directions, in steps of a hundredth of a degree: middle, axis, width along it, height across."""
    low = None
    for turn in np.radians(np.arange(-45, 45, 0.05)):
        axis = np.array([np.cos(turn), np.sin(turn)])
        along, across = points @ axis, points @ np.array([-axis[1], axis[0]])
        w, h = np.ptp(along), np.ptp(across)
        if low is None or w * h < low[0]:
            middle = axis * (along.max() + along.min()) / 2 + np.array([-axis[1], axis[0]]) * (across.max() + across.min()) / 2
            low = (w * h, middle, axis, w, h)
    return low[1:]


def ppocr_det(model, picture):
    height, width = (max(int(round(side / 32)) * 32, 32) for side in picture.shape[:2])
    pixels = (resized(picture, width, height)[..., ::-1] / 255 - _MEAN) / _STD
    chart = model.run(x=planes(pixels))[0][0, 0]
    scale = np.array([picture.shape[1] / width, picture.shape[0] / height])
    grid = np.stack(np.meshgrid(np.arange(width), np.arange(height)), -1).reshape(-1, 2)
    found = []
    for cells in regions(chart > 0.3):
        middle, axis, w, h = smallest_rectangle(cells)
        if min(w, h) < 3:
            continue
        off = grid - middle
        inside = (abs(off @ axis) <= w / 2 + 1e-6) & (abs(off @ np.array([-axis[1], axis[0]])) <= h / 2 + 1e-6)
        score = chart.reshape(-1)[inside].mean()
        if score < 0.6:
            continue
        grown = w * h * 1.5 / (2 * (w + h))
        w, h = w + 2 * grown, h + 2 * grown
        if min(w, h) < 5:
            continue
        reach = abs(axis) * w / 2 + abs(axis[::-1]) * h / 2
        corners = np.array([middle + 0.5 - reach, middle + 0.5 + reach]) * scale
        found.append([*corners.clip(0, picture.shape[1::-1]).reshape(-1), score])
    return {"boxes": np.array(sorted(found, key=lambda b: -b[4]))}


def ppocr_rec(model, picture, keys):
    width = int(np.ceil(48 * picture.shape[1] / picture.shape[0]))
    steps = model.run(x=planes((resized(picture, width, 48)[..., ::-1] / 255 - 0.5) / 0.5))[0][0]
    signs = ["", *keys, " "]
    read = steps.argmax(1)
    return {"text": "".join(signs[c] for i, c in enumerate(read) if c != 0 and (i == 0 or c != read[i - 1]))}


def ppocr_cls(model, picture):
    width = min(int(np.ceil(48 * picture.shape[1] / picture.shape[0])), 192)
    pixels = np.zeros((48, 192, 3))
    pixels[:, :width] = (resized(picture, width, 48)[..., ::-1] / 255 - 0.5) / 0.5
    return {"classes": best(model.run(x=planes(pixels))[0][0])}


def blazeface(model, picture):
    """MediaPipe's anchors: two a cell of a 16th of the side, six of an 8th; all of the size of the picture."""
    side = 256 if "back" in model.path else 128
    long = max(picture.shape[:2])
    assert picture.shape[0] == picture.shape[1], "a square needs no padding"
    out = model.run(**{model.inputs[0]: (resized(picture, side, side) / 127.5 - 1)[None].astype(np.float32)})
    scores = np.concatenate([o.reshape(-1) for o in out if o.shape[-1] == 1])
    moves = np.concatenate([o.reshape(-1, 16) for o in out if o.shape[-1] == 16])
    anchors = [((x + 0.5) / n, (y + 0.5) / n) for n, each in ((16, 2), (8, 6)) for y in range(n) for x in range(n) for _ in range(each)]
    middles = np.array(anchors) + moves[:, :2] / side
    sizes = moves[:, 2:4] / side
    sure = 1 / (1 + np.exp(-np.clip(scores.astype(float), -100, 100)))
    boxes = np.column_stack([middles - sizes / 2, middles + sizes / 2, sure])
    some = np.nonzero(sure >= 0.5)[0]
    some = some[kept(boxes[some], 0.3)]
    points = (np.array(anchors)[some, None] + moves[some, 4:].reshape(-1, 6, 2) / side) * long
    boxes = boxes[some]
    boxes[:, :4] *= long
    return {"boxes": boxes, "points": points.reshape(-1, 2)}


def mlsd(model, picture):
    side = int(model.path.rsplit("_", 2)[1].split("x")[0])
    pixels = np.concatenate([resized(picture, side, side), np.ones((side, side, 1))], -1)
    moves, scores = model.run(**{model.inputs[0]: pixels[None].astype(np.float32)})
    moves, scores = moves[0], scores[0, :, :, 0]
    found = []
    for y, x in zip(*np.nonzero(scores > 0.1)):
        ends = np.array([x, y, x, y]) + moves[y, x]
        if np.hypot(ends[2] - ends[0], ends[3] - ends[1]) > 20:
            found.append([*(2 * ends * np.array([picture.shape[1], picture.shape[0]] * 2) / side), scores[y, x]])
    return {"segments": np.array(sorted(found, key=lambda s: -s[4])[:200])}


def ultraface(model, picture):
    scores, boxes = model.run(input=planes((resized(picture, 320, 240) - 127) / 128))
    size = np.array([picture.shape[1], picture.shape[0]] * 2)
    all_boxes = np.column_stack([boxes[0] * size, scores[0, :, 1]])
    all_boxes = all_boxes[all_boxes[:, 4] > 0.7]
    return {"boxes": all_boxes[kept(all_boxes, 0.3)]}


def landmarks(model, picture):
    out = model.run(input=planes(gray(resized(picture, 64, 64)) / 256))[0]
    return {"points": out.reshape(68, 2) * np.array([picture.shape[1], picture.shape[0]])}


def feature(model, picture):
    out = model.run(input=planes((resized(picture, 112, 112) - 127) / 128))[0].reshape(-1)
    return {"arrays": {"output": out / np.linalg.norm(out)}}


def expression(model, picture):
    return {"classes": best(softmax(model.run(input=planes(resized(picture, 224, 224) / 255))[0][0]))}


def eye(model, picture):
    return {"classes": best(softmax(model.run(input=planes(gray(resized(picture, 24, 24)) / 255))[0][0]))}


def liveness(model, picture):
    return {"classes": best(softmax(model.run(input=planes(resized(picture, 128, 128)))[0][0]))}


def stages(model, picture):
    out = model.run(input=planes((resized(picture, 64, 64) / 255 - _MEAN) / _STD))
    return {"arrays": {name: array.reshape(-1) for name, array in zip(model.outputs, out)}}


def pose(model, picture):
    out = model.run(input=planes((resized(picture, 224, 224) / 255 - _MEAN) / _STD))
    return {"heads": [best(softmax(array[0]))[0] for array in out]}


def matte(model, picture):
    return {"map": model.run(**{model.inputs[0]: planes((resized(picture, 1024, 1024) - 128) / 256)})[0][0, 0]}
