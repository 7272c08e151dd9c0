// The runtime's module and its C interface (include/tilewright.h) as JavaScript calls.

/** Kinds of values, as in tilewright.h. */
const [NONE, INTEGER, FLOAT, STRING, BYTES, TENSOR, FUNCTION, MODULE, LIST, MAP] = Array(10).keys();
/** Bytes of a tw_value: kind, 0, number or handle. */
const VALUE = 16;

/** Element types: DLPack's code and bits, and the array that holds the elements. */
const TYPES = {
  i8: [0, 8, Int8Array],
  i16: [0, 16, Int16Array],
  i32: [0, 32, Int32Array],
  i64: [0, 64, BigInt64Array],
  u8: [1, 8, Uint8Array],
  u16: [1, 16, Uint16Array],
  u32: [1, 32, Uint32Array],
  u64: [1, 64, BigUint64Array],
  // The bits of the numbers: JavaScript has no array of such floats everywhere.
  f16: [2, 16, Uint16Array],
  f32: [2, 32, Float32Array],
  f64: [2, 64, Float64Array],
  bool: [6, 8, Uint8Array],
};

/** The array class of an element type. */
export function arrayOf(dtype) {
  const type = TYPES[dtype];
  if (!type) throw new TypeError(`elements of type ${dtype} are unknown here`);
  return type[2];
}

/** The status of a function that fails. */
const FAILED = 5;

/**
 * A module that exports the function which it imports, with the type of tw_callback: a table takes no function of
 * JavaScript, but those of modules.
 */
const CALLBACK = Uint8Array.of(
  0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, // magic and version
  1, 9, 1, 0x60, 4, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7f, // one type: four i32 to an i32
  2, 7, 1, 1, 0x65, 1, 0x66, 0, 0, // one import, e.f, of that type
  7, 5, 1, 1, 0x66, 0, 0, // exported as f
);

/** An error of the runtime, with its text. */
export class TilewrightError extends Error {
  constructor(text, status) {
    super(text);
    this.name = 'TilewrightError';
    /** The status of tilewright.h: 1 a wrong argument, 3 an unknown name, 5 a call that failed, 6 a fault. */
    this.status = status;
  }
}

/** One instance of the runtime. */
export class Runtime {
  /** @param {WebAssembly.Module} module */
  static async start(module) {
    const runtime = new Runtime();
    const imports = {
      tilewright: {
        now: () => performance.now(),
        panicked: (text, bytes) => {
          runtime.panic = runtime.text(text, bytes);
        },
      },
    };
    runtime.instance = await WebAssembly.instantiate(module, imports);
    return runtime;
  }

  constructor() {
    this.instance = null;
    this.panic = null;
    this.broken = null;
  }

  get exports() {
    return this.instance.exports;
  }

  /** The memory's bytes; a view is valid until the memory grows, which every call can cause. */
  bytes() {
    return new Uint8Array(this.exports.memory.buffer);
  }

  words() {
    return new DataView(this.exports.memory.buffer);
  }

  text(at, bytes) {
    return new TextDecoder().decode(this.bytes().slice(at, at + bytes));
  }

  /** Calls a function of the module. A trap leaves it in an unknown state, so it takes no further calls. */
  call(name, ...args) {
    if (this.broken) throw this.broken;
    try {
      return this.exports[name](...args);
    } catch (error) {
      const text = this.panic ?? error.message;
      this.broken = new TilewrightError(`the runtime stopped: ${text}; load the model again`, 6);
      throw this.broken;
    }
  }

  /** Calls a function that returns a status. */
  check(name, ...args) {
    const status = this.call(name, ...args);
    if (status !== 0) {
      const at = this.call('tw_error');
      const bytes = this.bytes();
      throw new TilewrightError(this.text(at, bytes.indexOf(0, at) - at), status);
    }
  }

  /** Runs `body` with memory for arguments, which is freed at the end: `take(bytes)` returns an address. */
  with(body) {
    const taken = [];
    const take = (bytes) => {
      const at = this.call('tw_wasm_alloc', bytes) >>> 0;
      if (at === 0) throw new TilewrightError(`${bytes} bytes of memory are more than WebAssembly provides`, 5);
      taken.push([at, bytes]);
      return at;
    };
    try {
      return body(take);
    } finally {
      if (!this.broken) taken.forEach(([at, bytes]) => this.call('tw_wasm_free', at, bytes));
    }
  }

  /** Copies bytes into memory. */
  put(take, bytes) {
    const at = take(bytes.byteLength);
    this.bytes().set(new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength), at);
    return at;
  }

  putText(take, text) {
    return this.put(take, new TextEncoder().encode(`${text}\0`));
  }

  /** Calls a function whose last argument receives a value; returns the value's 16 bytes. */
  made(name, take, ...args) {
    const out = take(VALUE);
    this.check(name, ...args, out);
    return this.bytes().slice(out, out + VALUE);
  }

  free(value) {
    if (this.broken) return;
    this.with((take) => this.call('tw_value_free', this.put(take, value)));
  }

  /** Makes a tensor from elements; the caller frees it. */
  tensor(dtype, shape, data) {
    return this.with((take) => {
      const [code, bits] = TYPES[dtype];
      const type = this.put(take, new Uint8Array([code, bits, 1, 0]));
      const lengths = this.put(take, BigInt64Array.from(shape, BigInt));
      return this.made('tw_tensor_new', take, this.put(take, data), type, lengths, shape.length);
    });
  }

  /** Makes a value of what a function in JavaScript returned; the caller frees it. */
  given(result) {
    if (result === null || result === undefined) return new Uint8Array(VALUE);
    if (typeof result?.then === 'function') throw new TypeError('it returned a Promise; functions must not be async');
    if (typeof result === 'number' || typeof result === 'bigint') {
      const value = new DataView(new ArrayBuffer(VALUE));
      const whole = typeof result === 'bigint' || Number.isSafeInteger(result);
      value.setUint32(0, whole ? INTEGER : FLOAT, true);
      if (whole) value.setBigInt64(8, BigInt(result), true);
      else value.setFloat64(8, result, true);
      return new Uint8Array(value.buffer);
    }
    if (typeof result === 'string') {
      const text = new TextEncoder().encode(result);
      return this.with((take) => this.made('tw_string_new', take, this.put(take, text), text.length));
    }
    if (Array.isArray(result)) return this.list(result);
    const { dtype, shape, data } = result;
    if (!ArrayBuffer.isView(data) || !Array.isArray(shape)) {
      throw new TypeError('it returned what is no tensor; return {dtype, shape, data}, or a list of them');
    }
    const Elements = arrayOf(dtype);
    const count = shape.reduce((product, length) => product * length, 1);
    if (!(data instanceof Elements) || data.length !== count) {
      throw new TypeError(
        `it returned a tensor of ${dtype} ${shape.join('x')} with ${data.length} elements of a ${data.constructor.name}`,
      );
    }
    return this.tensor(dtype, shape, data);
  }

  list(results) {
    const items = [];
    try {
      results.forEach((result) => items.push(this.given(result)));
      return this.with((take) => {
        const list = take(VALUE * items.length);
        items.forEach((value, i) => this.bytes().set(value, list + VALUE * i));
        return this.made('tw_list_new', take, list, items.length);
      });
    } finally {
      items.forEach((value) => this.free(value));
    }
  }

  /** Registers a function under a name: steps of models find it there when their session is opened. */
  async register(name, callable) {
    const called = (_context, args, count, result) => {
      try {
        const given = Array.from({ length: count }, (_, i) => {
          const at = (args >>> 0) + VALUE * i;
          return this.taken(this.bytes().slice(at, at + VALUE));
        });
        const value = this.given(callable(...given));
        this.bytes().set(value, result >>> 0);
        return 0;
      } catch (error) {
        // A fault of the runtime itself has left it in an unknown state.
        if (this.broken) throw error;
        const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
        this.with((take) => this.call('tw_set_error', this.putText(take, text.replaceAll('\0', ' '))));
        return FAILED;
      }
    };
    const { instance } = await WebAssembly.instantiate(CALLBACK, { e: { f: called } });
    const table = this.exports.__indirect_function_table;
    const index = table.grow(1);
    table.set(index, instance.exports.f);
    this.with((take) => {
      const made = this.made('tw_function_new', take, this.putText(take, name), index, 0, 0);
      try {
        this.check('tw_function_register', this.put(take, made));
      } finally {
        this.free(made);
      }
    });
  }

  /** A session of an artifact on a simulator, by its name or none. */
  session(artifact, name) {
    return this.with((take) => {
      const place = this.put(take, artifact);
      const device =
        name === null ? new Uint8Array(VALUE) : this.made('tw_wasm_device', take, place, this.putText(take, name));
      try {
        return this.made('tw_session_open', take, place, this.put(take, device));
      } finally {
        this.free(device);
      }
    });
  }

  /** Calls a function of a module with values; the caller frees the result. */
  invoke(module, name, args = []) {
    return this.with((take) => {
      const place = this.put(take, module);
      const wanted = this.made('tw_module_function', take, place, this.putText(take, name));
      try {
        const list = take(VALUE * args.length);
        args.forEach((value, i) => this.bytes().set(value, list + VALUE * i));
        return this.made('tw_function_call', take, this.put(take, wanted), list, args.length);
      } finally {
        this.free(wanted);
      }
    });
  }

  /** Calls a function and takes its result to JavaScript. */
  ask(module, name, args = []) {
    const value = this.invoke(module, name, args);
    try {
      return this.taken(value);
    } finally {
      this.free(value);
    }
  }

  /** A value in JavaScript: tensors as `{dtype, shape, data}`, maps as objects. */
  taken(value) {
    const view = new DataView(value.buffer, value.byteOffset, VALUE);
    const kind = view.getUint32(0, true);
    switch (kind) {
      case NONE:
        return null;
      case INTEGER:
        return Number(view.getBigInt64(8, true));
      case FLOAT:
        return view.getFloat64(8, true);
      case STRING:
      case BYTES:
        return this.with((take) => {
          const [data, bytes] = [take(4), take(4)];
          this.check('tw_value_data', this.put(take, value), data, bytes);
          const [at, length] = [this.words().getUint32(data, true), this.words().getUint32(bytes, true)];
          return kind === STRING ? this.text(at, length) : this.bytes().slice(at, at + length);
        });
      case TENSOR:
        return this.takenTensor(value);
      case LIST:
        return this.items(value);
      case MAP: {
        const names = this.with((take) => this.made('tw_value_names', take, this.put(take, value)));
        try {
          return Object.fromEntries(this.taken(names).map((name) => [name, this.named(value, name)]));
        } finally {
          this.free(names);
        }
      }
      case FUNCTION:
      case MODULE:
      default:
        throw new TypeError(`a value of kind ${kind} has no form in JavaScript`);
    }
  }

  items(list) {
    const count = this.with((take) => {
      const out = take(4);
      this.check('tw_value_length', this.put(take, list), out);
      return this.words().getUint32(out, true);
    });
    return Array.from({ length: count }, (_, i) => {
      const item = this.with((take) => this.made('tw_value_item', take, this.put(take, list), i));
      try {
        return this.taken(item);
      } finally {
        this.free(item);
      }
    });
  }

  named(map, name) {
    const item = this.with((take) =>
      this.made('tw_value_named', take, this.put(take, map), this.putText(take, name)),
    );
    try {
      return this.taken(item);
    } finally {
      this.free(item);
    }
  }

  takenTensor(value) {
    return this.with((take) => {
      const ROOM = 32;
      const [type, shape, axes, data, bytes] = [take(4), take(8 * ROOM), take(4), take(4), take(4)];
      this.words().setUint32(axes, ROOM, true);
      this.check('tw_tensor_view', this.put(take, value), type, shape, axes, data, bytes);
      const words = this.words();
      const [code, bits] = [words.getUint8(type), words.getUint8(type + 1)];
      const [dtype, [, , Elements]] = Object.entries(TYPES).find(([, t]) => t[0] === code && t[1] === bits);
      const count = words.getUint32(axes, true);
      const lengths = Array.from({ length: count }, (_, i) => Number(words.getBigInt64(shape + 8 * i, true)));
      const at = words.getUint32(data, true);
      const copy = this.bytes().slice(at, at + words.getUint32(bytes, true));
      return { dtype, shape: lengths, data: new Elements(copy.buffer) };
    });
  }

  /**
   * Opens an artifact. Its code, if it has any, is instantiated in the runtime's memory and table.
   *
   * @param {string} path for messages
   * @param {Uint8Array} artifact
   * @param {WebAssembly.Module | null} code
   * @param {{memoryBytes: number, memoryAlign: number, tableEntries: number}} needs of the code
   */
  async open(path, artifact, code, needs) {
    const functions = code ? await this.link(code, needs) : new Map();
    return this.with((take) => {
      const names = take(4 * functions.size);
      const indices = take(4 * functions.size);
      [...functions].forEach(([name, index], i) => {
        const at = this.putText(take, name);
        this.words().setUint32(names + 4 * i, at, true);
        this.words().setUint32(indices + 4 * i, index, true);
      });
      const data = this.put(take, artifact);
      return this.made(
        'tw_wasm_open', take, this.putText(take, path), data, artifact.length, names, indices, functions.size,
      );
    });
  }

  /** Instantiates code; returns the indices of its functions in the table by their names. */
  async link(code, { memoryBytes, memoryAlign, tableEntries }) {
    const table = this.exports.__indirect_function_table;
    const memoryBase = this.call('tw_wasm_alloc', memoryBytes + memoryAlign) >>> 0;
    const tableBase = table.grow(tableEntries);
    const constant = (value) => new WebAssembly.Global({ value: 'i32', mutable: false }, value);
    const env = {
      memory: this.exports.memory,
      __indirect_function_table: table,
      __stack_pointer: this.exports.__stack_pointer,
      __memory_base: constant(Math.ceil(memoryBase / memoryAlign) * memoryAlign),
      __table_base: constant(tableBase),
    };
    for (const { module, name, kind } of WebAssembly.Module.imports(code)) {
      if (module !== 'env' || kind !== 'function') continue;
      const index = this.with((take) => this.call('tw_wasm_import', this.putText(take, name)));
      if (index === 0) {
        throw new TilewrightError(
          `the model's code calls ${name}, which this runtime lacks; use the package of the same version as the compiler`,
          3,
        );
      }
      env[name] = table.get(index);
    }
    const { exports } = await WebAssembly.instantiate(code, { env });
    exports.__wasm_apply_data_relocs?.();
    exports.__wasm_call_ctors?.();
    const own = Object.entries(exports).filter(([name, value]) => typeof value === 'function' && !name.startsWith('__'));
    const first = table.grow(own.length);
    own.forEach(([, value], i) => table.set(first + i, value));
    return new Map(own.map(([name], i) => [name, first + i]));
  }
}
