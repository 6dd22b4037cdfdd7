/**
 * Where the files of a job lie in the object store:
 *
 *     jobs/<job>/spec.json
 *     jobs/<job>/desired.json                                        what people want of it; the first says that it was accepted
 *     jobs/<job>/checkpoints/<step>-<execution>-<nonce>/shard-00000-of-00004.safetensors …
 *     jobs/<job>/checkpoints/<step>-<execution>-<nonce>/MANIFEST.json    makes it count; written once, last
 *     jobs/<job>/checkpoints/<step>-<execution>-<nonce>/PINNED           there while somebody keeps it
 *     jobs/<job>/exports/<step>/…                                    of the finished job
 *     jobs/<job>/exports/<step>-<checkpoint>-<format>-<dtype>/…      asked for at a checkpoint
 *     jobs/<job>/exports/<step>-<checkpoint>-<format>-<dtype>/EXPORT.json   written once, last
 *     jobs/<job>/result.json
 *     jobs/<job>/deleted.json                                        the job was deleted; says whether its files were to go as well
 */

import { type Execution, executionOf } from '../../contracts/execution.js';

export const MANIFEST_FILE = 'MANIFEST.json';
export const PIN_FILE = 'PINNED';

/** Sorted as text, directories are sorted by step up to this many digits. */
const STEP_DIGITS = 9;
const SHARD_DIGITS = 5;
const DIRECTORY = /^(\d{9,})-(\d+)-([A-Za-z0-9]+)-([A-Za-z0-9]+)$/;

/** What tells one save from every other one. */
export interface SaveId {
  /** Steps done. */
  step: number;
  /** Whose save it is. */
  execution: Execution;
  /** Letters and digits that no other generation of the execution's ranks has. */
  nonce: string;
}

/** Key of a job's folder, without a slash at its end; everything that the job makes lies below it. */
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

/** Prefix of a job's checkpoints, with the slash at its end. */
export function checkpointsPrefix(jobId: string): string {
  return `${jobKey(jobId)}/checkpoints/`;
}

/** Name of the directory of one save. */
export function checkpointDirectory({ step, execution, nonce }: SaveId): string {
  return `${String(step).padStart(STEP_DIGITS, '0')}-${execution}-${nonce}`;
}

/** The save that a directory's name says, or null when it is no such name. */
export function parseCheckpointDirectory(name: string): SaveId | null {
  const [, step, epoch, token = '', nonce] = DIRECTORY.exec(name) ?? [];
  return nonce === undefined
    ? null
    : { step: Number(step), execution: executionOf(Number(epoch), token), nonce };
}

/** Key of the directory of a checkpoint, without a slash at its end. */
export function checkpointKey(jobId: string, directory: string): string {
  return `${checkpointsPrefix(jobId)}${directory}`;
}

/** Key of the mark of a pinned checkpoint. Its content says nothing. */
export function pinKey(directory: string): string {
  return `${directory}/${PIN_FILE}`;
}

/** `shard-00000-of-00004.safetensors` */
export function shardName(rank: number, worldSize: number): string {
  const digits = (value: number) => String(value).padStart(SHARD_DIGITS, '0');
  return `shard-${digits(rank)}-of-${digits(worldSize)}.safetensors`;
}

/** What tells the exports of one checkpoint from each other. */
export interface ExportId {
  checkpoint: string;
  format: string;
  dtype: string;
}

export function exportName({ checkpoint, format, dtype }: ExportId): string {
  return `${checkpoint}-${format}-${dtype}`;
}

/** Key of the folder of an export that was asked for, without a slash at its end. */
export function checkpointExportPrefix(jobId: string, step: number, id: ExportId): string {
  return `${jobKey(jobId)}/exports/${step}-${exportName(id)}`;
}

/** Prefix of a job's exports, with the slash at its end. */
export function exportsPrefix(jobId: string): string {
  return `${jobKey(jobId)}/exports/`;
}

/** Key of the folder of the model exported after `step` steps, without a slash at its end. */
export function exportPrefix(jobId: string, step: number): string {
  return `${jobKey(jobId)}/exports/${step}`;
}
