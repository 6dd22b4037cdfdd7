import { ZerofleetError } from '../../contracts/index.js';
import type { ParamRecord, ShardRecord, StateName, TensorRecord } from '../../contracts/rank-protocol.js';
import { BYTES_PER_ELEMENT, statesOf } from '../../platform/checkpoint/manifest.js';

/** What shards should hold together. */
export interface WholeState {
  params: readonly ParamRecord[];
  /** Of the optimizer. */
  states: readonly StateName[];
}

/**
 * Checks that the shards hold each element of each state of each parameter exactly once and nothing else, and that no
 * shard's tensors overlap or reach beyond its end.
 * @throws ZerofleetError `checkpoint_incomplete` naming the first gap or overlap
 */
export function checkCoverage({ params, states }: WholeState, shards: readonly ShardRecord[]): void {
  for (const shard of shards) checkLayout(shard);
  const pieces = groupPieces(shards);
  for (const param of params) {
    const { name, numel } = param;
    for (const state of statesOf(param, states)) {
      const key = `${state}/${name}`;
      checkWhole(key, numel, pieces.get(key) ?? []);
      pieces.delete(key);
    }
  }
  const stranger = pieces.keys().next().value;
  if (stranger !== undefined) throw incomplete(`${stranger} is not a state that this training has`);
}

function groupPieces(shards: readonly ShardRecord[]): Map<string, TensorRecord[]> {
  const pieces = new Map<string, TensorRecord[]>();
  for (const tensor of shards.flatMap((shard) => shard.tensors)) {
    const key = `${tensor.state}/${tensor.param}`;
    const list = pieces.get(key);
    if (list) list.push(tensor);
    else pieces.set(key, [tensor]);
  }
  return pieces;
}

function checkWhole(key: string, numel: number, pieces: TensorRecord[]): void {
  let covered = 0;
  for (const { element_begin, element_end } of pieces.sort((a, b) => a.element_begin - b.element_begin)) {
    if (element_begin > covered) throw incomplete(`${key} lacks elements [${covered}, ${element_begin})`);
    if (element_begin < covered) throw incomplete(`${key} has elements from ${element_begin} twice`);
    covered = element_end;
  }
  if (covered !== numel) throw incomplete(`${key} ends at element ${covered} of ${numel}`);
}

function checkLayout({ file, bytes, tensors }: ShardRecord): void {
  let end = 0;
  for (const tensor of [...tensors].sort((a, b) => a.byte_begin - b.byte_begin)) {
    const { byte_begin, byte_end, element_begin, element_end } = tensor;
    const expected = (element_end - element_begin) * BYTES_PER_ELEMENT;
    if (expected <= 0 || byte_end - byte_begin !== expected) {
      throw incomplete(
        `${file}: ${tensor.state}/${tensor.param} has ${byte_end - byte_begin} bytes for ${expected}`,
      );
    }
    if (byte_begin < end) throw incomplete(`${file}: tensors overlap at byte ${byte_begin}`);
    end = byte_end;
  }
  if (end > bytes) throw incomplete(`${file}: a tensor ends at byte ${end} of ${bytes}`);
}

function incomplete(message: string): ZerofleetError {
  return new ZerofleetError('checkpoint_incomplete', message);
}
