#!/usr/bin/env python3
"""Runs quantized ONNX files in ONNX Runtime and on Tilewright's CPU code, and prints how well they agree.

Each argument, or each line of standard input, is MODEL.onnx=INPUT.npy[,LABELS.npy]. The checks, with ONNX Runtime's graph
optimizations off (its fast int8 kernels saturate on processors without VNNI):

  operators   each QuantizeLinear and the nodes that it is computed from, alone, on the bytes that ONNX Runtime has there:
              at most 1 step apart, and equal in 99.9 % of the elements
  network     the whole network: the same class for at least 99 % of the inputs. The table has the largest difference in
              steps of the last scale
  optimized   ONNX Runtime with graph optimizations against ONNX Runtime without: signal over noise of the first output.
              At least 30 dB if all weights of the file are within 63, because then no sum saturates

ONNX's checker must accept every file. The exit code is 1 if a check fails. TILEWRIGHT is the program (default:
target/release/tilewright).
"""
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

TILEWRIGHT = os.environ.get("TILEWRIGHT", "target/release/tilewright")
SAMPLES = 3  # inputs on which single operators are compared


def session(model, fast=False):
    levels = ort.GraphOptimizationLevel
    options = ort.SessionOptions()
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if fast else levels.ORT_DISABLE_ALL
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    return ort.InferenceSession(model.SerializeToString(), options)


def reference(model, names, data):
    """Computes the named values for each input with ONNX Runtime."""
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    known = {o.name for o in probe.graph.output}
    for name in names:
        if name not in known:
            probe.graph.output.append(helper.make_empty_tensor_value_info(name))
    run = session(probe)
    return [run.run(names, {run.get_inputs()[0].name: x}) for x in data]


def decibels(right, found):
    """Returns the signal over noise."""
    noise = float(np.square(right.astype(np.float64) - found).sum())
    return 10 * np.log10(float(np.square(right.astype(np.float64)).sum()) / noise) if noise else np.inf


def has_seven_bits(model):
    """Returns whether all weights are within 63: constants of two or more dimensions that a DequantizeLinear reads."""
    taken = {n.input[0] for n in model.graph.node if n.op_type == "DequantizeLinear"}
    weights = [numpy_helper.to_array(t) for t in model.graph.initializer if t.name in taken and len(t.dims) > 1]
    weights = [w.astype(np.int32) for w in weights if w.dtype == np.int8]
    return bool(weights) and all(np.abs(w).max() <= 63 for w in weights)


def ours(path, inputs, folder):
    """Runs a model on named arrays, each with one run or several along its first axis; returns the first output."""
    arrays = os.path.join(folder, "in.npz")
    np.savez(arrays, **inputs)
    out = os.path.join(folder, "out")
    command = [TILEWRIGHT, "run", path, "--device", "cpu", "--input", arrays, "--output-dir", out]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    (file,) = os.listdir(out)
    result = np.load(os.path.join(out, file))
    os.remove(os.path.join(out, file))
    return result


def groups(model):
    """Yields every QuantizeLinear, the nodes back to the bytes that it depends on, and the names of these bytes."""
    made = {o: n for n in model.graph.node for o in n.output}
    constants = {t.name for t in model.graph.initializer}
    for root in model.graph.node:
        if root.op_type != "QuantizeLinear":
            continue
        nodes, sources, todo, seen = [], [], list(root.input), set()
        nodes.append(root)
        while todo:
            name = todo.pop()
            if not name or name in constants or name in seen:
                continue
            seen.add(name)
            node = made.get(name)
            if node is None or node.op_type == "QuantizeLinear":
                sources.append(name)
                continue
            nodes.append(node)
            todo.extend(node.input)
        yield root, nodes, sorted(sources)


def alone(model, root, nodes, sources, shapes):
    """Makes a model of one group: from bytes (or the network's own input) to bytes."""
    ids = {n.output[0] for n in nodes}
    kept = [n for n in model.graph.node if n.output[0] in ids]
    used = {i for n in kept for i in n.input}
    constants = [t for t in model.graph.initializer if t.name in used]
    info = lambda name: helper.make_tensor_value_info(name, *shapes[name])
    graph = helper.make_graph(kept, "group", [info(s) for s in sources], [info(root.output[0])], constants)
    return helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)


def check(path, inputs, labels, folder):
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    name = model.graph.input[0].name
    elem = model.graph.input[0].type.tensor_type
    shape = [d.dim_value for d in elem.shape.dim]
    data = inputs.reshape(-1, *shape)
    roots = list(groups(model))
    if not roots:
        print(f"{path}: WRONG: it has no QuantizeLinear, so nothing is quantized")
        return False
    names = sorted({r.output[0] for r, _, _ in roots})
    values = {n: [] for n in names + [name]}
    for x, found in zip(data[:SAMPLES], reference(model, names, data[:SAMPLES])):
        values[name].append(x)
        for n, v in zip(names, found):
            values[n].append(v)
    shapes = {n: (helper.np_dtype_to_tensor_dtype(v[0].dtype), list(v[0].shape)) for n, v in values.items()}
    worst, apart, total, compared = 0, 0, 0, 0
    for root, nodes, sources in roots:
        group = alone(model, root, nodes, sources, shapes)
        file = os.path.join(folder, "group.onnx")
        onnx.save(group, file)
        got = [ours(file, {s: values[s][i] for s in sources}, folder) for i in range(len(values[name]))]
        for g, want in zip(got, values[root.output[0]]):
            far = np.abs(g.astype(np.int32) - want.astype(np.int32))
            worst, apart, total = max(worst, int(far.max())), apart + int((far > 0).sum()), total + far.size
        compared += 1
    want = np.concatenate([y[0] for y in reference(model, [model.graph.output[0].name], data)])
    run = session(model, fast=True)
    fast = decibels(want, np.concatenate([run.run([model.graph.output[0].name], {name: x})[0] for x in data]))
    got = ours(path, {name: data.reshape(-1, *shape[1:])}, folder)
    want, got = want.reshape(len(data), -1), got.reshape(len(data), -1)
    last = [numpy_helper.to_array(t) for t in model.graph.initializer if t.name == f"{roots[-1][0].input[1]}"]
    step = float(last[0]) if roots[-1][0].output[0] and last else 1.0
    classes = float((want.argmax(1) == got.argmax(1)).mean())
    softmax = any(n.op_type == "Softmax" and n.output[0] == model.graph.output[0].name for n in model.graph.node)
    far = float(np.abs(want - got).max())
    distance = f"{far:.3f}" if softmax else f"{far / step:.0f} steps"
    right = f"{100 * (want.argmax(1) == labels).mean():.1f} / {100 * (got.argmax(1) == labels).mean():.1f} %" if labels is not None else ""
    good = worst <= 1 and apart <= 0.001 * total and classes >= 0.99 and (np.isnan(got) == np.isnan(want)).all()
    good = good and (fast >= 30 or not has_seven_bits(model))
    print(f"{path.split('/')[-1]:<28} {compared:>9} {worst:>6} {100 * (1 - apart / total):>9.4f} % {len(data):>7} {100 * classes:>7.2f} %"
          f" {distance:>10} {fast:>7.1f} dB  {right:>15}  {'good' if good else 'WRONG'}", flush=True)
    return good


def main():
    cases = sys.argv[1:] or [line.strip() for line in sys.stdin if line.strip()]
    print(f"ONNX Runtime {ort.__version__} without graph optimizations")
    print(f"{'model':<28} {'operators':>9} {'steps':>6} {'equal':>11} {'inputs':>7} {'class':>9} {'farthest':>10} {'optimized':>10}  {'accuracy, both':>15}")
    good = True
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            path, files = case.split("=", 1)
            files = files.split(",")
            labels = np.load(files[1]) if len(files) > 1 else None
            good &= check(path, np.load(files[0]), labels, folder)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
