// Tests of the JavaScript package: node wasm.mjs PACKAGE FOLDER. The folder has models with inputs and right outputs,
// which cases.json lists.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [place, folder] = process.argv.slice(2);
const { load, TilewrightError } = await import(pathToFileURL(join(place, 'index.js')));
const read = (name) => readFile(join(folder, name));
const cases = JSON.parse(await read('cases.json'));

const ARRAYS = {
  bool: Uint8Array, i8: Int8Array, u8: Uint8Array, i32: Int32Array, i64: BigInt64Array, f32: Float32Array,
};

/** The elements of a file. */
async function elements(name, dtype) {
  const bytes = await read(name);
  return new ARRAYS[dtype](bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
}

async function given(inputs) {
  const pairs = inputs.map(async ({ name, dtype, shape, file }) => [name, { shape, data: await elements(file, dtype) }]);
  return Object.fromEntries(await Promise.all(pairs));
}

/** Checks elements: bit by bit, or sums of floats, whose order differs between processors, within a tolerance. */
function same(found, wanted, tolerance, text) {
  if (tolerance === 0) return assert.deepEqual(found, wanted, text);
  assert.equal(found.length, wanted.length, text);
  const largest = wanted.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const apart = found.reduce((most, value, i) => Math.max(most, Math.abs(value - wanted[i])), 0);
  assert.ok(apart <= tolerance * largest, `${text}: ${apart} of ${largest} apart`);
}

for (const { model: file, device, runs, accelerated, tolerance } of cases) {
  const model = await load(await read(file), { device, name: file });
  // The second round finds memory as the first left it.
  for (const { inputs, outputs } of [...runs, ...runs]) {
    const { outputs: found, steps, cycles } = await model.report(await given(inputs));
    for (const { name, dtype, shape, file: wanted } of outputs) {
      assert.equal(found[name].dtype, dtype, `${file}: ${name}`);
      assert.deepEqual(found[name].shape, shape, `${file}: ${name}`);
      same(found[name].data, await elements(wanted, dtype), tolerance, `${file}: ${name}`);
    }
    assert.equal(steps.some((step) => step.place === 'accel'), accelerated, file);
    assert.equal(cycles !== null && cycles > 0, accelerated && device === 'csim', file);
  }
  model.close();
  await assert.rejects(model.run({}), /the model was closed/);
}

// Functions of JavaScript compute operators of a model's own.
{
  const packed = await read('packed.wasm');
  const seen = [];
  const functions = {
    'tests.Peaks': ({ dtype, shape, data }, attributes) => {
      seen.push(attributes);
      if (data[0] > 100) throw new RangeError('too much');
      const scaled = data.map((x) => x * attributes.by);
      const count = BigInt(data.filter((x) => x > attributes.above).length);
      return [{ dtype, shape, data: scaled }, { dtype: 'i64', shape: [1], data: BigInt64Array.of(count) }];
    },
  };
  const own = await load(packed, { functions, device: null });
  const memory = [];
  for (let i = 0; i < 20; i++) {
    const { outputs, steps } = await own.report(Float32Array.of(-1, 2, 3, 0.25));
    assert.deepEqual(outputs.y.data, Float32Array.of(0, 5, 7.5, 0.625));
    assert.deepEqual(outputs.count.data, BigInt64Array.of(2n));
    assert.equal(steps.filter((step) => step.place === 'packed' || step.name.includes('peaks')).length > 0, true);
    memory.push(own.memoryBytes);
  }
  assert.equal(memory.at(-1), memory.at(4));
  assert.deepEqual(seen[0], { above: 0.5, by: 2.5, names: ['a', 'b'] });
  const fails = (input, text) => assert.rejects(own.run(input), (e) => e instanceof TilewrightError && text.test(e.message));
  await fails(Float32Array.of(200, 0, 0, 0), /tests.Peaks: RangeError: too much/);
  assert.deepEqual((await own.run(Float32Array.of(0, 0, 0, 2))).y.data, Float32Array.of(0, 0, 0, 5));
  for (const [result, text] of [
    [3, /tests.Peaks.*returned/s],
    [Promise.resolve(), /returned a Promise; functions must not be async/],
    [{ dtype: 'f32', shape: [4], data: new Float32Array(3) }, /a tensor of f32 4 with 3 elements of a Float32Array/],
    [{ dtype: 'f32', shape: [4], data: new Float64Array(4) }, /elements of a Float64Array/],
    [{ dtype: 'f128', shape: [4], data: new Float64Array(4) }, /elements of type f128 are unknown here/],
    [{}, /what is no tensor; return \{dtype, shape, data\}/],
    [[{ dtype: 'f32', shape: [4], data: new Float32Array(4) }], /tests.Peaks/],
  ]) {
    const other = await load(packed, { functions: { 'tests.Peaks': () => result }, device: null });
    await assert.rejects(other.run(new Float32Array(4)), (e) => e instanceof TilewrightError && text.test(e.message), text);
  }
  await assert.rejects(load(packed, { device: null }), /calls the function tests.Peaks, which is not registered/);
  await assert.rejects(load(packed, { functions: { f: 3 } }), /functions: f is no function/);
}

// Errors say what is wrong, and the model goes on.
const [first] = cases;
const bytes = await read(first.model);
const model = await load(bytes);
const [input] = model.inputs;
const right = await given(first.runs[0].inputs);
const rejected = (inputs, text) => assert.rejects(model.run(inputs), (error) => text.test(error.message));
await rejected({ nothing: new Float32Array(1) }, /the model has no input nothing; it has /);
await rejected({}, new RegExp(`input ${input.name} is missing`));
await rejected(new Float64Array(4), new RegExp(`input ${input.name} is ${input.dtype}: give a \\w+, not Float64Array`));
await rejected(new ARRAYS[input.dtype](3), /elements, but 3 are given/);
const wrong = { [input.name]: { shape: [2, 3], data: new ARRAYS[input.dtype](6) } };
await assert.rejects(model.run(wrong), (error) => error instanceof TilewrightError && /has shape 2x3, but/.test(error.message));
await model.run(right);
await assert.rejects(load(bytes.subarray(0, bytes.length / 2)), /is no WebAssembly module that this engine takes/);
await assert.rejects(load(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0)), /has no model in it; make one with/);
await assert.rejects(load(new TextEncoder().encode('TILEWRGT')), /is damaged: it ends inside its header/);
await assert.rejects(load('model.wasm'), /give the bytes of a model, a URL or a Response/);
const damaged = Buffer.from(bytes);
damaged[damaged.length - 200] ^= 1;
await assert.rejects(load(damaged), /is damaged: the checksum of blob/);
const offloaded = cases.find((known) => known.accelerated);
const model2 = read(offloaded.model);
await assert.rejects(load(await model2, { device: null }), /runs on an accelerator; give a device/);
await assert.rejects(load(await model2, { device: 'tpu' }), /there is no device tpu here; there are: csim, fsim/);
// Runs keep no memory.
const run = async (count) => {
  for (let i = 0; i < count; i++) await model.run(right);
  return model.memoryBytes;
};
assert.equal(await run(5), await run(50));
console.log('all as it should be');
