// Runs a compiled model in Node: node infer.js MODEL.wasm [DEVICE]
//
// Reads the bytes of the model's only input from standard input, runs the model on DEVICE (fsim if none is named), and
// writes the bytes of its first output to standard output.

import { readFile } from 'node:fs/promises';
import { stdin, stdout } from 'node:process';

import { load } from 'tilewright';

const [file, device] = process.argv.slice(2);
if (!file) {
  console.error('usage: node infer.js MODEL.wasm [DEVICE]');
  process.exit(2);
}
const arrays = { i8: Int8Array, u8: Uint8Array, i32: Int32Array, i64: BigInt64Array, f32: Float32Array };
try {
  const model = await load(await readFile(file), { device, name: file });
  const bytes = Buffer.concat(await stdin.toArray());
  const elements = new arrays[model.inputs[0].dtype](Uint8Array.from(bytes).buffer);
  const outputs = await model.run(elements);
  stdout.write(new Uint8Array(outputs[model.outputs[0].name].data.buffer));
} catch (error) {
  console.error(error.message);
  process.exit(1);
}
