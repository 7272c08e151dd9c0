/** Element types. The elements of `f16` are their bits, those of `bool` are 0 and 1. */
export type DType = 'i8' | 'i16' | 'i32' | 'i64' | 'u8' | 'u16' | 'u32' | 'u64' | 'f16' | 'f32' | 'f64' | 'bool';

/** The array that holds the elements of a tensor. */
export type Elements =
  | Int8Array
  | Int16Array
  | Int32Array
  | BigInt64Array
  | Uint8Array
  | Uint8ClampedArray
  | Uint16Array
  | Uint32Array
  | BigUint64Array
  | Float32Array
  | Float64Array;

/** Elements in row-major order. */
export interface Tensor {
  dtype: DType;
  /** Lengths of the axes, slowest first. */
  shape: number[];
  data: Elements;
}

/** An input: the elements of the model's shape, or elements with a shape where the model leaves sizes open. */
export type Input = Elements | { shape: number[]; data: Elements };

/** What an input or output of a model is. */
export interface Description {
  name: string;
  dtype: DType;
  /** A length that the model leaves open is its name in an input, and null in an output. */
  shape: (number | string | null)[];
}

/** What one step of a run took. */
export interface StepReport {
  name: string;
  /** Where it ran: cpu, accel or packed. */
  place: string;
  /** Seconds of this machine. */
  seconds: number;
  /** Clock cycles of the accelerator; only the device `csim` counts them. */
  cycles: number | null;
  [detail: string]: unknown;
}

/** The value of an attribute. */
export type Attribute = number | string | Attribute[];

/**
 * A function that computes an operator: it gets a tensor for each operand and then, if there are any, the attributes as
 * `Record<string, Attribute>`. It returns a tensor, or a list with one for each output.
 */
export type OperatorFunction = (...operands: any[]) => Tensor | Tensor[];

export interface LoadOptions {
  /**
   * The simulator of the accelerator: `fsim` computes values (the default), `csim` also counts cycles. null if
   * nothing runs on an accelerator.
   */
  device?: 'fsim' | 'csim' | null;
  /** The runtime's module, or where it is; by default next to this package's code. */
  runtime?: URL | Response | ArrayBuffer | ArrayBufferView | WebAssembly.Module;
  /** A name for the model in messages. */
  name?: string;
  /**
   * Functions that compute the model's operators of your own, by the names that the model calls: `DOMAIN.OPERATOR`. They
   * are called while the model runs, and return their result at once. What they throw is the text of a TilewrightError.
   */
  functions?: Record<string, OperatorFunction>;
}

/** An error of the runtime, with its text. */
export class TilewrightError extends Error {
  constructor(text: string, status: number);
  /** The status of tilewright.h: 1 a wrong argument, 3 an unknown name, 5 a call that failed, 6 a fault. */
  readonly status: number;
}

/** A model that is ready to run. */
export class Model {
  private constructor();
  /** What the model takes, in its order. */
  readonly inputs: Description[];
  /** What it returns, in its order. */
  readonly outputs: Description[];
  /** The runtime's description of the model: its steps, values and configuration. */
  readonly manifest: unknown;
  /** Bytes of memory that the model takes now, with its weights and the simulated device's memory. */
  readonly memoryBytes: number;
  /**
   * Runs the model once. Inputs are given by name, as a list in the model's order, or alone if there is one. Returns
   * the outputs by name.
   *
   * @throws TypeError if an input is not what the model takes, TilewrightError if the run fails
   */
  run(inputs: Record<string, Input> | Input[] | Input): Promise<Record<string, Tensor>>;
  /** Like `run`, and also says what each step took. */
  report(
    inputs: Record<string, Input> | Input[] | Input,
  ): Promise<{ outputs: Record<string, Tensor>; steps: StepReport[]; [total: string]: unknown }>;
  /** Gives the model's memory back. */
  close(): void;
}

/**
 * Loads a model of `tilewright compile --emit wasm`, or an artifact whose steps all run on the accelerator.
 *
 * @param source the file's bytes, its URL, or a Response of fetch
 * @throws TypeError if the file is no model, TilewrightError if the runtime refuses it
 */
export function load(source: URL | Response | ArrayBuffer | ArrayBufferView, options?: LoadOptions): Promise<Model>;
