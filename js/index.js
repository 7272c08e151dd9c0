// Runs models that `tilewright compile --emit wasm` has compiled, in Node and in web pages.

import { divide, needs } from './module.js';
import { Runtime, TilewrightError, arrayOf } from './runtime.js';

export { TilewrightError };

const PLACE = new URL('./runtime.wasm', import.meta.url);

/** The compiled module of the runtime, for each place that it was loaded from. */
const runtimes = new Map();

/** @returns {Promise<Uint8Array>} the bytes of a file or an address */
async function fetched(place) {
  if (place.protocol === 'file:' && globalThis.process?.versions?.node) {
    const { readFile } = await import('node:fs/promises');
    return new Uint8Array(await readFile(place));
  }
  const response = await fetch(place);
  return responded(response);
}

async function responded(response) {
  if (!response.ok) throw new TypeError(`${response.url}: ${response.status} ${response.statusText}`);
  return new Uint8Array(await response.arrayBuffer());
}

/** @returns {Promise<Uint8Array>} */
async function bytesOf(source) {
  if (source instanceof URL) return fetched(source);
  if (source instanceof ArrayBuffer) return new Uint8Array(source);
  if (ArrayBuffer.isView(source)) return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
  if (typeof Response !== 'undefined' && source instanceof Response) return responded(source);
  throw new TypeError('give the bytes of a model, a URL or a Response');
}

function runtimeModule(place) {
  if (place instanceof WebAssembly.Module) return place;
  const key = String(place);
  if (!runtimes.has(key)) {
    const module = bytesOf(place).then((bytes) => WebAssembly.compile(bytes));
    runtimes.set(key, module);
    // The next call tries again.
    module.catch(() => runtimes.delete(key));
  }
  return runtimes.get(key);
}

/**
 * Loads a model.
 *
 * @param source bytes, a URL or a Response
 * @param {import('./index.js').LoadOptions} [options]
 */
export async function load(source, options = {}) {
  const { device = 'fsim', runtime: place = PLACE, name = 'the model', functions = {} } = options;
  for (const [own, callable] of Object.entries(functions)) {
    if (typeof callable !== 'function') throw new TypeError(`functions: ${own} is no function`);
  }
  const [{ code, artifact }, module] = await Promise.all([bytesOf(source).then(divide), runtimeModule(place)]);
  // Each model has an instance of its own: closing it gives its memory back, and a fault in it is no other's.
  const runtime = await Runtime.start(module);
  await Promise.all(Object.entries(functions).map(([own, callable]) => runtime.register(own, callable)));
  const opened = await runtime.open(name, artifact, code, code ? needs(code) : null);
  return new Model(runtime, opened, runtime.session(opened, device));
}

/** A model that is ready to run. */
export class Model {
  #runtime;
  #artifact;
  #session;

  constructor(runtime, artifact, session) {
    this.#runtime = runtime;
    this.#artifact = artifact;
    this.#session = session;
    /** What the model takes; a length that it leaves open is its name. */
    this.inputs = runtime.ask(artifact, 'inputs');
    /** What it returns. */
    this.outputs = runtime.ask(artifact, 'outputs');
  }

  /** The runtime's description of the model: its steps, values and configuration. */
  get manifest() {
    return JSON.parse(this.#open().ask(this.#artifact, 'manifest'));
  }

  /** Bytes of memory that the model takes now. */
  get memoryBytes() {
    return this.#open().exports.memory.buffer.byteLength;
  }

  /** Runs the model once: outputs by their names. */
  async run(inputs) {
    const outputs = this.#call('run', inputs, (runtime, value) => runtime.taken(value));
    return this.#byName(outputs);
  }

  /** Like `run`, and also says what each step took. */
  async report(inputs) {
    const { outputs, ...report } = this.#call('report', inputs, (runtime, value) => runtime.taken(value));
    return { outputs: this.#byName(outputs), ...report };
  }

  /** Gives the model's memory back. */
  close() {
    this.#runtime = null;
  }

  #open() {
    if (!this.#runtime) throw new TypeError('the model was closed');
    return this.#runtime;
  }

  #byName(outputs) {
    return Object.fromEntries(outputs.map((tensor, i) => [this.outputs[i].name, tensor]));
  }

  #call(name, inputs, take) {
    const runtime = this.#open();
    const args = [];
    try {
      for (const tensor of this.#tensors(inputs)) args.push(runtime.tensor(tensor.dtype, tensor.shape, tensor.data));
      const value = runtime.invoke(this.#session, name, args);
      args.push(value);
      return take(runtime, value);
    } finally {
      args.forEach((value) => runtime.free(value));
    }
  }

  /** The inputs in the model's order, checked. */
  #tensors(inputs) {
    const given = Array.isArray(inputs)
      ? new Map(inputs.map((tensor, i) => [this.inputs[i]?.name ?? `number ${i}`, tensor]))
      : isTensor(inputs) && this.inputs.length === 1
        ? new Map([[this.inputs[0].name, inputs]])
        : new Map(Object.entries(inputs));
    const names = this.inputs.map((input) => input.name);
    const unknown = [...given.keys()].find((name) => !names.includes(name));
    if (unknown !== undefined) throw new TypeError(`the model has no input ${unknown}; it has ${names.join(', ')}`);
    return this.inputs.map((input) => {
      if (!given.has(input.name)) throw new TypeError(`input ${input.name} is missing`);
      return tensorOf(given.get(input.name), input);
    });
  }
}

function isTensor(value) {
  return ArrayBuffer.isView(value) || (ArrayBuffer.isView(value?.data) && Array.isArray(value?.shape));
}

/** A typed array or `{shape, data}` as a tensor for an input. */
function tensorOf(value, { name, dtype, shape }) {
  const data = ArrayBuffer.isView(value) ? value : value?.data;
  const Elements = arrayOf(dtype);
  // A clamped array holds bytes, too.
  if (!(data instanceof Elements || (dtype === 'u8' && data instanceof Uint8ClampedArray))) {
    const found = data?.constructor?.name ?? typeof value;
    throw new TypeError(`input ${name} is ${dtype}: give a ${Elements.name}, not ${found}`);
  }
  const known = ArrayBuffer.isView(value) ? shape : value.shape;
  if (!known.every((length) => Number.isInteger(length) && length >= 0)) {
    throw new TypeError(`input ${name} has open sizes, ${known.join('x')}; give {shape, data}`);
  }
  const count = known.reduce((product, length) => product * length, 1);
  if (data.length !== count) {
    throw new TypeError(`input ${name} has shape ${known.join('x')}, ${count} elements, but ${data.length} are given`);
  }
  return { dtype, shape: known, data };
}
