"""Writes TFLite files of many independent operators, with the schema in the package ai-edge-litert."""
import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as tfl

TYPES = {"int8": tfl.TensorType.INT8, "uint8": tfl.TensorType.UINT8, "int32": tfl.TensorType.INT32,
         "int16": tfl.TensorType.INT16, "int64": tfl.TensorType.INT64, "float32": tfl.TensorType.FLOAT32,
         "bool": tfl.TensorType.BOOL}


# Versions of operators that begin above 1.
VERSIONS = {tfl.BuiltinOperator.BROADCAST_TO: 2}


class Q:
    """Scales and zero points; `axis` is the dimension with a scale per index."""

    def __init__(self, scale, zero=0, axis=None):
        self.scale = [float(np.float32(s)) for s in np.atleast_1d(scale)]
        self.zero = [int(zero)] * len(self.scale)
        self.axis = axis or 0


class File:
    """A model that collects inputs and outputs as operators are added."""

    def __init__(self):
        self.graph = tfl.SubGraphT()
        self.graph.tensors, self.graph.operators, self.graph.inputs, self.graph.outputs = [], [], [], []
        self.buffers = [tfl.BufferT()]
        self.codes = []
        self.data = {}

    def tensor(self, dtype, shape, q=None, name=None):
        t = tfl.TensorT()
        t.type, t.shape, t.buffer = TYPES[dtype], [int(n) for n in shape], 0
        t.name = name or f"t{len(self.graph.tensors)}"
        if q:
            t.quantization = tfl.QuantizationParametersT()
            t.quantization.scale, t.quantization.zeroPoint = q.scale, q.zero
            t.quantization.quantizedDimension = q.axis
        self.graph.tensors.append(t)
        return len(self.graph.tensors) - 1

    def constant(self, array, q=None):
        at = self.tensor(array.dtype.name, array.shape, q)
        buffer = tfl.BufferT()
        buffer.data = np.frombuffer(array.tobytes(), np.uint8)
        self.graph.tensors[at].buffer = len(self.buffers)
        self.buffers.append(buffer)
        return at

    def input(self, array, q=None):
        name = f"x{len(self.graph.inputs)}"
        at = self.tensor(array.dtype.name, array.shape, q, name)
        self.graph.inputs.append(at)
        self.data[name] = array
        return at

    def add(self, operator, inputs, results, **options):
        """Adds an operator. Each of `results` is (dtype, shape, Q); options have the schema's names."""
        code = getattr(tfl.BuiltinOperator, operator)
        if code not in self.codes:
            self.codes.append(code)
        op = tfl.OperatorT()
        op.opcodeIndex, op.inputs = self.codes.index(code), inputs
        op.outputs = [self.tensor(*r, name=f"y{len(self.graph.outputs) + i}") for i, r in enumerate(results)]
        self.graph.outputs += op.outputs
        kind = options.pop("kind", None)
        if kind:
            op.builtinOptionsType = getattr(tfl.BuiltinOptions, kind)
            op.builtinOptions = getattr(tfl, kind + "T")()
            for name, value in options.items():
                assert hasattr(op.builtinOptions, name), name
                setattr(op.builtinOptions, name, value)
        self.graph.operators.append(op)

    def bytes(self):
        model = tfl.ModelT()
        model.version, model.subgraphs, model.buffers, model.operatorCodes = 3, [self.graph], self.buffers, []
        for code in self.codes:
            entry = tfl.OperatorCodeT()
            entry.builtinCode, entry.deprecatedBuiltinCode, entry.version = code, min(code, 127), VERSIONS.get(code, 1)
            model.operatorCodes.append(entry)
        builder = flatbuffers.Builder(1 << 16)
        builder.Finish(model.Pack(builder), b"TFL3")
        return bytes(builder.Output())
