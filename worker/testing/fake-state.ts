/** State that the fake core trains: a function of the seed and the number of steps, owned in blocks by the ranks. */

import { createHash } from 'node:crypto';
import type { Restore, StateName } from '../../contracts/rank-protocol.js';
import { STATE_NAMES } from '../../contracts/state-records.js';
import { sumDigests } from '../../formats/checkpoint/digest.js';
import { ShardContents } from '../../formats/checkpoint/shard-contents.js';
import { momentsOf } from '../../job-document/index.js';
import type { ParamInfo, Slice, TrainerConfig } from '../shared/native/adapter.js';

const FAKE_BLOCK = 16;
/** Small buckets, so that a rank owns several ranges of one parameter. */
export const FAKE_SHARDING = { block_elements: FAKE_BLOCK, bucket_blocks: 4, expert_sets: 1 };
const PARAMS = [
  { name: 'model.embed_tokens.weight', shape: [8, 12] },
  { name: 'model.norm.weight', shape: [10] },
  { name: 'lm_head.weight', shape: [12, 9] },
];

export function fakeParamTable(): ParamInfo[] {
  let firstBlock = 0;
  return PARAMS.map(({ name, shape }, index) => {
    const numel = shape.reduce((product, size) => product * size, 1);
    const numBlocks = Math.ceil(numel / FAKE_BLOCK);
    const group = shape.length > 1 ? ('decay' as const) : ('no_decay' as const);
    const info = {
      index,
      name,
      shape,
      numel,
      group,
      base: false,
      quantization: null,
      first_block: firstBlock,
      num_blocks: numBlocks,
    };
    firstBlock += numBlocks;
    return info;
  });
}

/** Returns the digest of the whole state after `step` steps, for any number of ranks. */
export function fakeStateDigest(seed: number, step: number, training: FakeTraining = ADAMW): string {
  return digestOf(fakeState(seed, step), training, { rank: 0, world_size: 1 });
}

/**
 * Returns the digest after `step` steps of a job that started from the state of another one with the same seed after
 * `from` steps.
 */
export function fakeInitializedDigest(seed: number, from: number, restore: Restore, step: number): string {
  const state = fakeState(seed, from);
  restoreOnly(state, restore, seed);
  for (let done = 0; done < step; done++) advance(state, done + 1);
  return digestOf(state, ADAMW, { rank: 0, world_size: 1 });
}

/** Settings that determine the states of a parameter. Arrays of the other states exist without an owner. */
interface FakeTraining extends Pick<TrainerConfig, 'ema'> {
  optimizer: Pick<TrainerConfig['optimizer'], 'type'>;
  param_groups: readonly Pick<TrainerConfig['param_groups'][number], 'match' | 'frozen'>[];
}

const ADAMW: FakeTraining = { optimizer: { type: 'adamw' }, param_groups: [] };

export function fakeStateNames({ optimizer, ema }: Pick<FakeTraining, 'optimizer' | 'ema'>): StateName[] {
  return ['master', ...momentsOf(optimizer), ...(ema ? (['ema'] as const) : [])];
}

/** Returns the states of one parameter; a group matches the whole name of a parameter here. */
export function statesOf(training: FakeTraining, param: number): readonly StateName[] {
  return isFrozen(training, param) ? ['master'] : fakeStateNames(training);
}

function isFrozen({ param_groups }: FakeTraining, param: number): boolean {
  return param_groups.find(({ match }) => match === PARAMS[param]?.name)?.frozen ?? false;
}

export type FakeState = Map<StateName, Float32Array[]>;

export function fakeState(seed: number, step: number): FakeState {
  const values = (state: StateName) =>
    fakeParamTable().map(({ index, numel }) => {
      const salt = seed * 7 + STATE_NAMES.indexOf(state) * 31 + index * 17;
      return Float32Array.from({ length: numel }, (_, element) => initialValue(salt, element));
    });
  const state: FakeState = new Map(STATE_NAMES.map((name) => [name, values(name)]));
  for (let done = 0; done < step; done++) advance(state, done + 1);
  return state;
}

/** Resets the parts of a loaded state that the restore excludes. */
export function restoreOnly(state: FakeState, restore: Restore, seed: number): void {
  if (restore === 'weights')
    for (const [name, arrays] of fakeState(seed, 0)) if (name !== 'master') state.set(name, arrays);
  if (restore !== 'weights_16bit') return;
  for (const array of state.get('master') ?? []) {
    const words = new Uint32Array(array.buffer);
    for (let i = 0; i < words.length; i++) words[i] = (words[i] as number) & 0xffff_0000;
  }
}

function initialValue(salt: number, element: number): number {
  return ((salt * 131 + element * 29) % 1009) / 1009;
}

/** Trains one step: each value depends on its history, so wrong bytes have a lasting effect. */
export function advance(state: FakeState, step: number): void {
  for (const arrays of state.values()) {
    for (const array of arrays) {
      for (let i = 0; i < array.length; i++)
        array[i] = Math.fround((array[i] as number) * 0.75 + step * 0.125);
    }
  }
}

export function ownedSlices(training: FakeTraining, { rank, world_size }: FakeOwner): Slice[] {
  const params = fakeParamTable().map((info) => ({
    ...info,
    frozen: isFrozen(training, info.index),
    base: false,
    expert_set: null,
  }));
  const states = ['master'] as const;
  const contents = new ShardContents({ params, states, sharding: FAKE_SHARDING, world_size });
  return Array.from(contents.stretches(rank), ({ param, begin, end }) => ({ param, begin, end }));
}

interface FakeOwner {
  rank: number;
  world_size: number;
}

export function digestOf(state: FakeState, training: FakeTraining, owner: FakeOwner): string {
  const parts: string[] = [];
  for (const { param, begin, end } of ownedSlices(training, owner)) {
    const firstBlock = (fakeParamTable()[param]?.first_block ?? 0) + begin / FAKE_BLOCK;
    for (const name of statesOf(training, param))
      parts.push(fakeDigest(name, firstBlock, bytesOf(valuesOf(state, name, param).subarray(begin, end))));
  }
  return sumDigests(parts);
}

/** Digest of values from a block on. */
export function fakeDigest(state: StateName, firstBlock: number, values: Uint8Array): string {
  const blockBytes = FAKE_BLOCK * Float32Array.BYTES_PER_ELEMENT;
  const parts: string[] = [];
  for (let at = 0; at < values.length; at += blockBytes)
    parts.push(
      createHash('md5')
        .update(`${state}/${firstBlock + at / blockBytes}/`)
        .update(values.subarray(at, at + blockBytes))
        .digest('hex'),
    );
  return sumDigests(parts);
}

export function valuesOf(state: FakeState, name: StateName, param: number): Float32Array {
  const values = state.get(name)?.[param];
  if (!values) throw new Error(`no parameter ${param} of ${name}`);
  return values;
}

export function bytesOf(values: Float32Array): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}
