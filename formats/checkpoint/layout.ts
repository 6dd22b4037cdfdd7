/**
 * Keys of a job's objects in the object store:
 *
 *     jobs/<job>/spec.json
 *     jobs/<job>/desired.json                                        desired state; the first one marks the job as
 *                                                                    accepted
 *     jobs/<job>/checkpoints/<step>-<execution>-<nonce>/shard-00000-of-00004.safetensors …
 *     jobs/<job>/checkpoints/<step>-<execution>-<nonce>/reference.f64    of preference objectives that compare with the
 *                                                                        initial model
 *     jobs/<job>/checkpoints/<step>-<execution>-<nonce>/MANIFEST.json    commits the checkpoint; written once, last
 *     jobs/<job>/checkpoints/<step>-<execution>-<nonce>/PINNED           marker of a pinned checkpoint
 *     jobs/<job>/exports/<step>/…                                    of the finished job
 *     jobs/<job>/exports/<step>-<checkpoint>-<format>-<dtype>/…      requested export of a checkpoint; of other than
 *                                                                    the trained weights …-<weights>, with an
 *                                                                    event file …-tensorboard
 *     jobs/<job>/exports/<step>-<checkpoint>-<format>-<dtype>/EXPORT.json   commits the export; written once, last
 *     jobs/<job>/exports/edit-<nonce>/values.f32                     values that a worker puts into a new checkpoint
 *     jobs/<job>/calls/<number>.json                                  a call of a session; written once
 *     jobs/<job>/results/<number>.json                                its result; written once
 *     jobs/<job>/call-numbers/<request>.<attempt>                     number that a request of Tinker's API has claimed
 *                                                                    for its call; written once
 *     jobs/<job>/rewards/<number>.json                                the samples of a `sample` call of the objective
 *                                                                    grpo, with their rewards; written once
 *     jobs/<job>/result.json
 *     jobs/<job>/deleted.json                                        deletion marker; states whether artifacts are
 *                                                                    removed, too
 */

import { type Execution, epochOf, executionOf } from '../../contracts/execution.js';

export const MANIFEST_FILE = 'MANIFEST.json';
export const REFERENCE_FILE = 'reference.f64';
const PIN_FILE = 'PINNED';

/** Digits up to which directories sort by step when sorted as text. */
const STEP_DIGITS = 9;
const SHARD_DIGITS = 5;
/** Digits up to which calls sort by number when sorted as text. */
const CALL_DIGITS = 12;
const DIRECTORY = /^(\d{9,})-(\d+)-([A-Za-z0-9]+)-([A-Za-z0-9]+)$/;

/** Identity of one save. */
export interface SaveId {
  /** Completed steps. */
  step: number;
  /** Execution that saves. */
  execution: Execution;
  /** Letters and digits unique to one generation of the execution's ranks. */
  nonce: string;
}

/** Returns the key of a job's folder, without a trailing slash. All objects of the job lie below it. */
export function jobKey(jobId: string): string {
  return `jobs/${jobId}`;
}

export function specKey(jobId: string): string {
  return `${jobKey(jobId)}/spec.json`;
}

export function desiredKey(jobId: string): string {
  return `${jobKey(jobId)}/desired.json`;
}

export function resultKey(jobId: string): string {
  return `${jobKey(jobId)}/result.json`;
}

export function deletedKey(jobId: string): string {
  return `${jobKey(jobId)}/deleted.json`;
}

/** Returns the prefix of a session's calls, with a trailing slash. */
export function callsPrefix(jobId: string): string {
  return `${jobKey(jobId)}/calls/`;
}

/** Returns the prefix of the results of a session's calls, with a trailing slash. */
export function callResultsPrefix(jobId: string): string {
  return `${jobKey(jobId)}/results/`;
}

/** Returns the prefix of the numbers that requests have claimed for their calls, with a trailing slash. */
export function callNumbersPrefix(jobId: string): string {
  return `${jobKey(jobId)}/call-numbers/`;
}

/** Returns the key of the number that a request has claimed for its call, in its first attempt or a later one. */
export function callNumberKey(jobId: string, request: string, attempt: number): string {
  return `${callNumbersPrefix(jobId)}${request}.${attempt}`;
}

export function callKey(jobId: string, number: number): string {
  return `${callsPrefix(jobId)}${callFile(number)}`;
}

export function callResultKey(jobId: string, number: number): string {
  return `${callResultsPrefix(jobId)}${callFile(number)}`;
}

/** Returns the prefix of the rewards of a job's samples, with a trailing slash. */
export function rewardsPrefix(jobId: string): string {
  return `${jobKey(jobId)}/rewards/`;
}

/** Returns the key of the rewards of the samples of a call. */
export function rewardsKey(jobId: string, number: number): string {
  return `${rewardsPrefix(jobId)}${callFile(number)}`;
}

function callFile(number: number): string {
  return `${String(number).padStart(CALL_DIGITS, '0')}.json`;
}

/** Returns the prefix of a job's checkpoints, with a trailing slash. */
export function checkpointsPrefix(jobId: string): string {
  return `${jobKey(jobId)}/checkpoints/`;
}

/** Returns the directory name of a save. */
export function checkpointDirectory({ step, execution, nonce }: SaveId): string {
  return `${String(step).padStart(STEP_DIGITS, '0')}-${execution}-${nonce}`;
}

/** Parses a directory name, or returns null for another name. */
export function parseCheckpointDirectory(name: string): SaveId | null {
  const [, step, epoch, token = '', nonce] = DIRECTORY.exec(name) ?? [];
  return nonce === undefined
    ? null
    : { step: Number(step), execution: executionOf(Number(epoch), token), nonce };
}

/** Position of a save among those of its job. */
export interface SaveOrder extends Pick<SaveId, 'execution' | 'step'> {
  /** Id of the checkpoint; absent for a save that the job store does not know. */
  id?: string | undefined;
}

/**
 * Orders saves from the oldest on. Of two checkpoints of one step and epoch one was made from the other, and has the
 * later id. A save that the job store does not know is the last of its step and epoch.
 */
export function compareSaves(a: SaveOrder, b: SaveOrder): number {
  const LAST = '~';
  const [id, other] = [a.id ?? LAST, b.id ?? LAST];
  return (
    a.step - b.step || epochOf(a.execution) - epochOf(b.execution) || (id < other ? -1 : id > other ? 1 : 0)
  );
}

/** Returns the key of a checkpoint's directory, without a trailing slash. */
export function checkpointKey(jobId: string, directory: string): string {
  return `${checkpointsPrefix(jobId)}${directory}`;
}

/** Returns the key of the marker of a pinned checkpoint. Its content is empty. */
export function pinKey(directory: string): string {
  return `${directory}/${PIN_FILE}`;
}

/** `shard-00000-of-00004.safetensors` */
export function shardName(rank: number, worldSize: number): string {
  const digits = (value: number) => String(value).padStart(SHARD_DIGITS, '0');
  return `shard-${digits(rank)}-of-${digits(worldSize)}.safetensors`;
}

/** Identity of an export among those of one checkpoint. */
export interface ExportId {
  checkpoint: string;
  format: string;
  dtype: string;
  weights: string;
  tensorboard: boolean;
}

export function exportName({ checkpoint, format, dtype, weights, tensorboard }: ExportId): string {
  const more = `${weights === 'trained' ? '' : `-${weights}`}${tensorboard ? '-tensorboard' : ''}`;
  return `${checkpoint}-${format}-${dtype}${more}`;
}

/** Returns the key of the folder of a requested export, without a trailing slash. */
export function checkpointExportPrefix(jobId: string, step: number, id: ExportId): string {
  return `${jobKey(jobId)}/exports/${step}-${exportName(id)}`;
}

/** Returns the name of a change of a tensor among its job's exports; it also names the holder of the checkpoint. */
export function editName(editId: string): string {
  return `edit-${editId}`;
}

/** Returns the key of a new object with the values of a changed tensor. */
export function editValuesKey(jobId: string, nonce: string): string {
  return `${exportsPrefix(jobId)}edit-${nonce}/values.f32`;
}

/** Returns the prefix of a job's exports, with a trailing slash. */
export function exportsPrefix(jobId: string): string {
  return `${jobKey(jobId)}/exports/`;
}

/** Returns the key of the folder of the model exported after `step` steps, without a trailing slash. */
export function exportPrefix(jobId: string, step: number): string {
  return `${jobKey(jobId)}/exports/${step}`;
}
