import { crc32c } from '@node-rs/crc32';
import type { RangeChecksum, RetryPolicy } from '../../contracts/rank-protocol.js';
import { STATE_NAMES } from '../../platform/checkpoint/manifest.js';
import { planReads } from '../../platform/checkpoint/read-plan.js';
import type { ObjectStore } from '../../platform/object-store/index.js';
import { type Fetch, planFetches } from '../checkpoint/chunks.js';
import { hexCrc, readManifest } from '../checkpoint/read-manifest.js';
import { isRetryable } from '../errors.js';
import type { RankTrainer } from '../native/adapter.js';
import { retry } from '../retry.js';

export interface LoadOptions {
  objects: ObjectStore;
  /** Key of the checkpoint's directory. */
  directory: string;
  trainer: RankTrainer;
  /** Names in canonical order. */
  params: readonly string[];
  retry: RetryPolicy;
}

export interface LoadedPart {
  at: { step: number; optimizer_steps: number; skipped_steps: number };
  /** Checksums of everything that was read. */
  ranges: RangeChecksum[];
}

/** Requests that are under way at once. */
const PARALLEL_FETCHES = 4;

/**
 * Reads what this rank owns out of a checkpoint that any number of ranks wrote: just those bytes, each once. The bytes are not
 * verified yet: the checksums go to the agent, which has those of all ranks.
 * @throws errors of the object store; `manifest_invalid`, `checkpoint_incomplete`
 */
export async function loadCheckpoint(options: LoadOptions): Promise<LoadedPart> {
  const { objects, directory, trainer, params, retry: policy } = options;
  const manifest = await retry(() => readManifest(objects, directory), policy, { retryable: isRetryable });
  const owned = trainer
    .slices()
    .map(({ param, begin, end }) => ({ param: nameOf(params, param), begin, end }));
  const wanted = STATE_NAMES.flatMap((state) => owned.map((slice) => ({ state, ...slice })));
  const fetches = planFetches(planReads(manifest, wanted));
  const index = new Map(params.map((name, i) => [name, i]));
  const ranges: RangeChecksum[] = [];

  const load = async (fetch: Fetch): Promise<void> => {
    const { file, begin, end } = fetch;
    const bytes = await retry(() => objects.get(`${directory}/${file}`, { begin, end }), policy, {
      retryable: isRetryable,
    });
    ranges.push({ file, begin, end, crc32c: hexCrc(crc32c(bytes)) });
    for (const piece of fetch.pieces) {
      const data = bytes.subarray(piece.byte_begin - begin, piece.byte_end - begin);
      trainer.load(piece.state, index.get(piece.param) ?? -1, piece.begin, data);
    }
  };
  await inParallel(fetches, PARALLEL_FETCHES, load);

  const { step, optimizer_steps, skipped_steps } = manifest;
  return { at: { step, optimizer_steps, skipped_steps }, ranges };
}

async function inParallel<T>(
  items: readonly T[],
  lanes: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const queue = items.values();
  const lane = async () => {
    for (const item of queue) await work(item);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

function nameOf(params: readonly string[], index: number): string {
  const name = params[index];
  if (name === undefined) throw new Error(`the core owns parameter ${index}, but has ${params.length}`);
  return name;
}
