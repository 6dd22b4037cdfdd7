// Layering of native/: allowed includes per folder. Two further rules restrict external headers to one folder each, and keep
// elementary functions of the C library, whose last bits differ between processors, out of code that computes a job's state.
import { readFileSync } from 'node:fs';
import { listFiles } from '../bootstrap/fingerprint.mjs';
import { inRoot } from '../bootstrap/paths.mjs';

const mayInclude = {
  core: [],
  comm: ['core'],
  kernels: ['core'],
  data: ['core'],
  model: ['core', 'kernels'],
  zero: ['core', 'kernels', 'comm'],
  train: ['core', 'kernels', 'comm', 'data', 'model', 'zero'],
  bench: ['core', 'kernels', 'comm', 'data', 'model', 'zero', 'train'],
  binding: ['core', 'kernels', 'comm', 'data', 'model', 'zero', 'train', 'bench'],
};
const everything = [...Object.keys(mayInclude), 'test'];

/** External headers that only one folder may include: [pattern, folder]. (.cu files have CUDA's without an include.) */
const ownedHeaders = [
  [/^(napi|node_api)/, 'binding/'],
  [/^gloo\//, 'comm/'],
  [/^cuda/, 'core/cuda/'],
];

/** SIMD files are compiled once per instruction set: the linker could pick a shared inline function with the wrong instructions. */
const simdMayInclude = /^(kernels\/cpu\/simd\/|\.?\/?[a-z0-9_]+\.(h|inc)$|std[a-z]*\.h$|c[a-z]+$)/;

/** Headers with plain data and no functions: they emit no code. */
const plainDataHeaders = /^(core\/dtype_enum|kernels\/[a-z]+_scalars)\.h$/;

const INCLUDE = /^\s*#\s*include\s*[<"]([^>"]+)[>"]/;

/**
 * Problem of one include, or null.
 * @param {string} file the including file, relative to native/
 * @param {string} header the text between quotes or angle brackets
 */
export function includeProblem(file, header) {
  const folder = file.split('/')[0];
  const target = header.split('/')[0];
  if (folder === 'test') return null;
  const owned = ownedHeaders.find(([pattern]) => pattern.test(header));
  if (owned && !file.startsWith(owned[1])) return `only ${owned[1]} may include <${header}>`;
  const isSimd = file.startsWith('kernels/cpu/simd/');
  if (isSimd && !simdMayInclude.test(header) && !plainDataHeaders.test(header)) {
    return `SIMD files include only kernels/cpu/simd/ and C headers, not ${header}`;
  }
  if (!header.includes('/') || !everything.includes(target) || target === folder) return null;
  return mayInclude[folder]?.includes(target) ? null : `${folder}/ may not include ${target}/`;
}

const ELEMENTARY =
  /(?<![\w.>])(?:std)?::((?:pow|exp|exp2|expm1|log|log2|log10|log1p|a?(?:sin|cos|tan)h?|atan2|erfc?|cbrt|hypot|[tl]gamma)[fl]?)\s*\(/;
const computesState = /^(core|data|kernels|model|train|zero)\//;

/** Problem of the calls in one line, or null. @param {string} file relative to native/ */
export function callProblem(file, line) {
  const name = computesState.test(file) && ELEMENTARY.exec(line.replace(/\/\/.*/, ''))?.[1];
  return name
    ? `the bits of the C library's ${name}() differ between processors: use core/portable_math.h`
    : null;
}

/** @returns {string[]} one line per include or call that violates the tables above */
export function nativeLayerProblems() {
  const accept = (path) =>
    path.endsWith('/') ? !path.startsWith('native/build') : /\.(cc|h|cu|cuh|inc)$/.test(path);
  return listFiles(['native'], accept).flatMap((path) => {
    const lines = readFileSync(inRoot(path), 'utf8').split('\n');
    return lines.flatMap((line, index) => {
      const header = INCLUDE.exec(line)?.[1];
      const file = path.replace(/^native\//, '');
      const found = header ? includeProblem(file, header) : callProblem(file, line);
      return found ? [`${path}:${index + 1}: ${found}`] : [];
    });
  });
}
