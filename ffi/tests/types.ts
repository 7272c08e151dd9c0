// Uses every type of the JavaScript package. `make wasm` has TypeScript check it; it never runs.

import { load, TilewrightError, type Model, type OperatorFunction, type StepReport, type Tensor } from 'tilewright';

const softsign: OperatorFunction = ({ shape, data }: Tensor) => ({
  dtype: 'f32',
  shape,
  data: (data as Float32Array).map((x) => x / (1 + Math.abs(x))),
});

export async function infer(bytes: ArrayBuffer): Promise<Tensor> {
  const functions = { 'my.ops.Softsign': softsign };
  const model: Model = await load(bytes, { device: 'csim', name: 'mine', functions });
  const [input] = model.inputs;
  try {
    const alone: Record<string, Tensor> = await model.run(new Float32Array(784));
    const named = await model.run({ [input.name]: { shape: [1, 784], data: new Float32Array(784) } });
    const { outputs, steps } = await model.report([new Float32Array(784)]);
    const cycles: (number | null)[] = steps.map((step: StepReport) => step.cycles);
    return [alone, named, outputs][cycles.length % 3][model.outputs[0].name];
  } catch (error) {
    if (error instanceof TilewrightError) console.error(error.status, error.message, model.memoryBytes);
    throw error;
  } finally {
    model.close();
  }
}

export async function refused(bytes: ArrayBuffer): Promise<void> {
  // @ts-expect-error the package has no such device
  await load(bytes, { device: 'rtl' });
  // @ts-expect-error a path is no URL
  await load('model.wasm');
  const model = await load(bytes);
  // @ts-expect-error plain lists are no elements
  await model.run({ x: [1, 2, 3] });
  // @ts-expect-error functions return tensors
  await load(bytes, { functions: { f: () => 'text' } });
}
