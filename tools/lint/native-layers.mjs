// The layering of native/: which room may include which, and how folders are cut. Two further rules keep outside
// headers in one file each. Another one keeps elementary functions of the C library out of whatever computes a job's
// state, because their last bits differ between processors.
import { readFileSync } from 'node:fs';
import { listFiles } from '../bootstrap/fingerprint.mjs';
import { inRoot } from '../bootstrap/paths.mjs';
import { includedHeader } from '../graph/references.mjs';
import { folderCycles, largeFolders } from './folders.mjs';

const mayInclude = {
  core: [],
  comm: ['core'],
  kernels: ['core'],
  data: ['core'],
  model: ['core', 'kernels'],
  zero: ['core', 'kernels', 'comm'],
  train: ['core', 'kernels', 'comm', 'data', 'model', 'zero', 'serve'],
  serve: ['core', 'kernels', 'model'],
  bench: ['core', 'kernels', 'comm', 'data', 'model', 'zero', 'train', 'serve'],
  binding: ['core', 'kernels', 'comm', 'data', 'model', 'zero', 'train', 'serve', 'bench'],
};
const everything = [...Object.keys(mayInclude), 'test'];

/**
 * Headers from outside that belong to one folder: [pattern, the folder]. (.cu files have CUDA's without an include.)
 */
const ownedHeaders = [
  [/^(napi|node_api)/, 'binding/'],
  [/^gloo\//, 'comm/'],
  [/^cuda/, 'core/cuda/'],
];

/**
 * SIMD files are compiled once per instruction set: a shared inline function could end up with the wrong instructions.
 */
const simdMayInclude = /^(kernels\/[a-z]+\/simd\/|\.?\/?[a-z0-9_]+\.(h|inc)$|std[a-z]*\.h$|c[a-z]+$)/;
const simdFile = /^kernels\/[a-z]+\/simd\//;

/**
 * Headers with plain data, and with functions that always go into their callers: nothing in them can be emitted for the
 * wrong machine.
 */
const simdShares = /^(core\/(dtype_enum|host_device|quant_format)|kernels\/[a-z]+\/formulas\/[a-z_0-9]+)\.h$/;
const formulaFile = /^kernels\/[a-z]+\/formulas\//;
const UNMARKED_FUNCTION = /^(?!\s*(ZF_FORMULA|if|for|while|switch)\b)[\w:<>,&* ]+\(.*\)( const)? \{/;

/**
 * Returns the problem of one include, or null.
 * @param {string} file the including file, relative to native/
 * @param {string} header as it stands between quotes or angle brackets
 */
export function includeProblem(file, header) {
  const folder = file.split('/')[0];
  const target = header.split('/')[0];
  if (folder === 'test') return null;
  const owned = ownedHeaders.find(([pattern]) => pattern.test(header));
  if (owned && !file.startsWith(owned[1])) return `only ${owned[1]} may include <${header}>`;
  if (simdFile.test(file) && !simdMayInclude.test(header) && !simdShares.test(header)) {
    return `SIMD files include only simd/ and formulas/ folders of kernels/ and C headers, not ${header}`;
  }
  if (formulaFile.test(file) && !simdShares.test(header) && header !== 'stdint.h') {
    return `formulas include only formulas/ folders, plain data of core/ and stdint.h, not ${header}`;
  }
  if (!header.includes('/') || !everything.includes(target) || target === folder) return null;
  return mayInclude[folder]?.includes(target) ? null : `${folder}/ may not include ${target}/`;
}

const ELEMENTARY =
  /(?<![\w.>])(?:std)?::((?:pow|exp|exp2|expm1|log|log2|log10|log1p|a?(?:sin|cos|tan)h?|atan2|erfc?|cbrt|hypot|[tl]gamma)[fl]?)\s*\(/;
const computesState = /^(core|data|kernels|model|serve|train|zero)\//;

/**
 * Returns the problem of one line that is not an include, or null.
 * @param {string} file relative to native/
 */
export function callProblem(file, line) {
  if (formulaFile.test(file) && UNMARKED_FUNCTION.test(line)) {
    return 'a function of a formula must be marked ZF_FORMULA, since SIMD sources use it';
  }
  const name = computesState.test(file) && ELEMENTARY.exec(line.replace(/\/\/.*/, ''))?.[1];
  return name
    ? `the bits of the C library's ${name}() differ between processors: use core/portable_math.h`
    : null;
}

/**
 * @returns {string[]} a line for each include or call that the tables above don't allow, crowded folder and cycle of
 * folders
 */
export function nativeLayerProblems() {
  const accept = (path) => !path.startsWith('native/build') && path !== 'native/third_party/';
  const files = listFiles(['native'], accept).map((path) => path.replace(/^native\//, ''));
  const sources = new Set(files.filter((file) => /\.(cc|h|cu|cuh|inc)$/.test(file)));
  const includes = [];
  const problems = [];
  for (const file of sources) {
    const lines = readFileSync(inRoot('native', file), 'utf8').split('\n');
    for (const [index, line] of lines.entries()) {
      const header = includedHeader(line);
      const found = header ? includeProblem(file, header) : callProblem(file, line);
      if (found) problems.push(`native/${file}:${index + 1}: ${found}`);
      if (sources.has(header)) includes.push([`native/${file}`, `native/${header}`]);
    }
  }
  // Golden data is written by scripts, a file per case.
  const surveyed = files.filter((file) => !file.startsWith('test/golden/')).map((file) => `native/${file}`);
  return [...problems, ...largeFolders(surveyed), ...folderCycles(includes, { withFiles: true })];
}
