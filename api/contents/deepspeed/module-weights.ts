/**
 * Comparison of the optimizer's master weights with the module's weights in the same checkpoint. The module has the
 * master weights, rounded to its dtype, so a master weight at a wrong index shows. DeepSpeed's own conversion to the
 * universal layout puts the elements of checkpoints with `round_robin_gradients` at wrong indices.
 */
import { isWeightDtype } from '../../../formats/models/weights.js';
import { ELEMENT_BYTES } from '../../../formats/safetensors/header.js';
import { TorchTensor } from '../../../formats/torch-file/values.js';
import type { ModuleTensor } from '../../../job-document/index.js';
import type { ReadBytes } from '../../../platform/threads/serve-tasks.js';
import type { RankFile } from './raw.js';
import { problem, type Run, tensorOf } from './runs.js';
import { entryOf } from './updates.js';

/** Equal elements of a tensor in two files. */
export interface Pair {
  master: Run;
  module: Run;
}

/** Compared elements at each end of a run, which suffice to find one at a wrong index. */
const WINDOW = 512;
/** Bounds the number of reads, however many runs there are. */
const MAX_PAIRS = 4096;
/** Pairs that are read at once. */
const BATCH = 16;

/**
 * Returns both ends of each run of master weights whose tensor is whole in the first model states. In ZeRO stage 3 they
 * have none.
 * @param runs of the module's tensors
 */
export function comparedPairs(
  runs: readonly Run[],
  files: readonly RankFile[],
  tensors: ReadonlyMap<string, ModuleTensor>,
): Pair[] {
  const whole = files.find(({ rank }) => rank === 0);
  if (whole === undefined) return [];
  const modules = moduleRuns(whole, tensors);
  const pairs = runs.flatMap((run) => {
    const module = run.state === 'master' ? modules.get(run.param) : undefined;
    if (module === undefined) return [];
    const head = Math.min(run.end, run.begin + WINDOW);
    const tail = Math.max(head, run.end - WINDOW);
    return [[run.begin, head] as const, [tail, run.end] as const].flatMap(([begin, end]) =>
      begin < end ? [{ master: partOf(run, begin, end), module: partOf(module, begin, end) }] : [],
    );
  });
  const stride = Math.ceil(pairs.length / MAX_PAIRS);
  return pairs.filter((_, index) => index % stride === 0);
}

function moduleRuns({ name, file }: RankFile, tensors: ReadonlyMap<string, ModuleTensor>): Map<string, Run> {
  const module = entryOf(file.value, 'module');
  const runs = new Map<string, Run>();
  for (const [param, { numel }] of tensors) {
    const value = entryOf(module, param);
    if (!(value instanceof TorchTensor) || value.numel !== numel || !isWeightDtype(value.dtype)) continue;
    const { dtype, byte_begin } = tensorOf(name, file, value, ` as ${param}`);
    runs.set(param, { state: 'master', param, begin: 0, end: numel, file: name, dtype, byte_begin });
  }
  return runs;
}

function partOf(run: Run, begin: number, end: number): Run {
  return { ...run, begin, end, byte_begin: run.byte_begin + (begin - run.begin) * ELEMENT_BYTES[run.dtype] };
}

/** @throws ZerofleetError `model_tensor_mismatch`; errors of `read` */
export async function checkModuleWeights(pairs: readonly Pair[], read: ReadBytes): Promise<void> {
  for (let at = 0; at < pairs.length; at += BATCH)
    await Promise.all(pairs.slice(at, at + BATCH).map((pair) => checkPair(pair, read)));
}

async function checkPair({ master, module }: Pair, read: ReadBytes): Promise<void> {
  const [ours, theirs] = await Promise.all([valuesOf(master, read), valuesOf(module, read)]);
  const { relative, absolute } = ROUNDING[module.dtype];
  const differs = (value: number, at: number) => {
    const rounded = theirs[at] ?? Number.NaN;
    return Number.isFinite(rounded) && !(Math.abs(value - rounded) <= Math.abs(value) * relative + absolute);
  };
  const at = ours.findIndex(differs);
  if (at < 0) return;
  const element = `element ${master.begin + at} of ${master.param}`;
  const values = `${ours[at]} in ${master.file} and ${theirs[at]} in ${module.file}`;
  const why = master.file.startsWith('zero/')
    ? 'ds_to_universal.py mixes up checkpoints with round_robin_gradients; send the folder that save_checkpoint wrote'
    : 'send files that one call of save_checkpoint wrote';
  throw problem(
    'model_tensor_mismatch',
    `${element} is ${values}, which is no rounding: ${why}`,
    master.file,
  );
}

/** One unit in the last place, relative to the value, and of the smallest values. */
const ROUNDING = {
  F32: { relative: 2 ** -23, absolute: 2 ** -149 },
  BF16: { relative: 2 ** -7, absolute: 2 ** -133 },
  F16: { relative: 2 ** -10, absolute: 2 ** -24 },
} as const;

async function valuesOf({ file, dtype, begin, end, byte_begin }: Run, read: ReadBytes): Promise<number[]> {
  const bytes = await read(byte_begin, byte_begin + (end - begin) * ELEMENT_BYTES[dtype], file);
  return Array.from({ length: end - begin }, (_, at) => VALUE[dtype](bytes, at));
}

const VALUE = {
  F32: (bytes: Buffer, at: number) => bytes.readFloatLE(4 * at),
  BF16: (bytes: Buffer, at: number) => bf16(bytes.readUInt16LE(2 * at)),
  F16: (bytes: Buffer, at: number) => fp16(bytes.readUInt16LE(2 * at)),
} as const;

function bf16(bits: number): number {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt16LE(bits, 2);
  return bytes.readFloatLE(0);
}

function fp16(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const [exponent, fraction] = [(bits >> 10) & 0x1f, bits & 0x3ff];
  if (exponent === 0x1f) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (exponent - 25));
}
