// A model's WebAssembly module: its code, and the artifact in a custom section.

const SECTION = 'tilewright.artifact';
/** The first bytes of an artifact. */
const ARTIFACT = 'TILEWRGT';

/**
 * Divides the bytes of a file into code and artifact. The file is a module of `tilewright compile --emit wasm`, or an
 * artifact without code of the CPU.
 *
 * @param {Uint8Array} bytes
 * @returns {Promise<{code: WebAssembly.Module | null, artifact: Uint8Array}>}
 */
export async function divide(bytes) {
  if (new TextDecoder('latin1').decode(bytes.subarray(0, ARTIFACT.length)) === ARTIFACT) {
    return { code: null, artifact: bytes };
  }
  let code;
  try {
    code = await WebAssembly.compile(bytes);
  } catch (error) {
    throw new TypeError(
      `the file is no WebAssembly module that this engine takes (${error.message}); make one with: ` +
        'tilewright compile MODEL --emit wasm -o NAME.wasm',
    );
  }
  const [artifact] = WebAssembly.Module.customSections(code, SECTION);
  if (!artifact) {
    throw new TypeError(
      'the module has no model in it; make one with: tilewright compile MODEL --emit wasm -o NAME.wasm',
    );
  }
  return { code, artifact: new Uint8Array(artifact) };
}

/**
 * The memory and the entries of the table that a position-independent module needs (section `dylink.0` of WebAssembly's
 * tool conventions).
 *
 * @param {WebAssembly.Module} code
 * @returns {{memoryBytes: number, memoryAlign: number, tableEntries: number}}
 */
export function needs(code) {
  const [section] = WebAssembly.Module.customSections(code, 'dylink.0');
  const none = { memoryBytes: 0, memoryAlign: 1, tableEntries: 0 };
  if (!section) return none;
  const bytes = new Uint8Array(section);
  let at = 0;
  const number = () => {
    for (let value = 0, shift = 0; ; shift += 7) {
      const byte = bytes[at++];
      value += (byte & 0x7f) * 2 ** shift;
      if (!(byte & 0x80)) return value;
    }
  };
  while (at < bytes.length) {
    const kind = bytes[at++];
    const end = number() + at;
    if (kind === 1) {
      const [memoryBytes, memoryAlign, tableEntries] = [number(), 2 ** number(), number()];
      return { memoryBytes, memoryAlign, tableEntries };
    }
    at = end;
  }
  return none;
}
