/**
 * File names of DeepSpeed checkpoints. A raw checkpoint has one file of each kind per rank, at ZeRO stages 1 and 2 a
 * single file of the first kind. `ds_to_universal.py` converts it to a universal checkpoint, which also has the first
 * kind:
 *
 *     [zero_pp_rank_0_]mp_rank_00_model_states.pt        the module's weights, shapes of parameters, counters
 *     [bf16_]zero_pp_rank_0_mp_rank_00_optim_states.pt   the rank's shards of master weights and optimizer state
 *
 *     zero/<parameter>/fp32.pt, exp_avg.pt …, step.pt    universal: each parameter whole
 *     zero/optimizer_state.pt                            settings of the optimizer's groups
 */
import type { StateName } from '../../../contracts/rank-protocol.js';

/** Files of a parameter's folder and the state that each holds. */
export const STATE_FILES: Readonly<Record<string, StateName>> = {
  fp32: 'master',
  exp_avg: 'exp_avg',
  exp_avg_sq: 'exp_avg_sq',
  momentum_buffer: 'momentum_buffer',
  sum: 'sum',
};

type DeepSpeedFile =
  | { kind: 'param'; param: string; content: string }
  | { kind: 'optimizer' }
  | { kind: 'model_states' | 'optim_states'; rank: number; tensor_rank: number };

const PARAM = /^zero\/([A-Za-z0-9_][A-Za-z0-9_.-]{0,250})\/([A-Za-z0-9_]{1,64})\.pt$/;
const OF_A_RANK =
  /^(?:(?:bf16_|fp16_)?zero_pp_rank_(\d{1,6})_)?mp_rank_(\d{2,6})_(model_states|optim_states)\.pt$/;

/** Checkpoint folder of a path and the file's name below it; null for a file outside any checkpoint. */
export function inCheckpoint(path: readonly string[]): { root: string; name: string } | null {
  const zero = path.lastIndexOf('zero');
  const at = zero < 0 ? path.length - 1 : zero;
  const name = path.slice(at).join('/');
  return deepSpeedFile(name) === null ? null : { root: path.slice(0, at).join('/'), name };
}

/** Kind of a file, from its name below the checkpoint's folder. */
export function deepSpeedFile(name: string): DeepSpeedFile | null {
  if (name === 'zero/optimizer_state.pt') return { kind: 'optimizer' };
  const [, param, content] = PARAM.exec(name) ?? [];
  if (param !== undefined && content !== undefined) return { kind: 'param', param, content };
  const [, rank = '0', tensorRank, kind] = OF_A_RANK.exec(name) ?? [];
  if (kind !== 'model_states' && kind !== 'optim_states') return null;
  return { kind, rank: Number(rank), tensor_rank: Number(tensorRank) };
}

/** File of a state in a parameter's folder. */
export function stateFile(param: string, state: StateName): string {
  return `zero/${param}/${state === 'master' ? 'fp32' : state}.pt`;
}
