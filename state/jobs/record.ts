/**
 * Representation of a job in its Redis hash: texts and numbers as they are, everything else as JSON, null as the empty
 * text.
 */
import type { Execution } from '../../contracts/execution.js';
import {
  isFinal,
  type Job,
  type JobProgress,
  type ReportedProgress,
  type ResolvedJobSpec,
  type StateChange,
  ZerofleetError,
} from '../../contracts/index.js';
import { baseOf, datasetsOf, gpuBytesBySize, leafCount, modelsOf } from '../../job-document/index.js';
import { documentHash } from '../../platform/canonical-json.js';
import { randomPiece } from '../../platform/random.js';
import { limitFields, usageOf } from '../core/limits.js';
import type { WorkerSlots } from '../pools/scheduling.js';
import { CONTROL_FIELDS, type Control, controlFields, controlOf } from './control.js';
import { jobIndexes } from './job-list.js';

/**
 * `overrides`: a hash of the document's overrides, by which a worker detects that its ranks run with different ones.
 */
export function overridesField({ train }: ResolvedJobSpec) {
  return { overrides: documentHash(train.overrides) };
}

/** `gpu_bytes`: JSON of `gpuBytesBySize`. */
export function gpuFields(spec: ResolvedJobSpec) {
  return { gpu_bytes: JSON.stringify(gpuBytesBySize(spec)) };
}

/** Fields from which the order of waiting jobs is computed. */
export function demandFields({ project, priority, resources, train, zero }: ResolvedJobSpec) {
  return {
    project,
    priority: String(priority),
    ranks_min: String(resources.ranks.min),
    // The maximum number of ranks that the job can use.
    ranks_max: String(leafCount(train)),
    // The number of ranks is a multiple of this.
    ranks_multiple: String(zero.expert_parallel_size),
  };
}

/** Returns the job in the form of the reply to its creation. */
export function initialJob(id: string, spec: ResolvedJobSpec, at: string): Job {
  return {
    id,
    name: spec.name,
    state: 'queued',
    reason: null,
    state_version: 1,
    queue_position: null,
    state_history: [{ state: 'queued', reason: null, at }],
    created_at: at,
    updated_at: at,
    spec,
    labels: spec.labels,
    progress: progressOf(spec, {
      step: 0,
      tokens: 0,
      loss: null,
      tokens_per_second: null,
      eta_seconds: null,
    }),
    attempt: 1,
    epoch: 0,
    world_size: null,
    requested_ranks: spec.resources.ranks.preferred,
    latest_checkpoint: null,
    lost_work_seconds: 0,
    usage: { run_seconds: 0, rank_seconds: 0, cost: 0 },
    export: null,
    failure: null,
  };
}

/** Returns the progress with the number of steps, which the document may get later. */
export function progressOf({ train }: ResolvedJobSpec, reported: ReportedProgress): JobProgress {
  const { steps: totalSteps = null } = train;
  const percent = totalSteps === null ? null : (100 * reported.step) / totalSteps;
  return { ...reported, total_steps: totalSteps, percent };
}

function sourceCheckpoint({ model }: ResolvedJobSpec): string {
  const { init_from } = model;
  return init_from !== null && 'checkpoint' in init_from ? init_from.checkpoint : '';
}

/** Returns the hash of a new job; its history is a separate list. */
export function toRecord(job: Job): Record<string, string> {
  return {
    ...internalFields(job),
    id: job.id,
    name: job.name,
    state: job.state,
    reason: job.reason ?? '',
    state_version: String(job.state_version),
    created_at: job.created_at,
    updated_at: job.updated_at,
    spec: JSON.stringify(job.spec),
    progress: JSON.stringify(job.progress),
    attempt: String(job.attempt),
    epoch: String(job.epoch),
    world_size: nullable(job.world_size, String),
    requested_ranks: String(job.requested_ranks),
    latest_checkpoint: nullable(job.latest_checkpoint, JSON.stringify),
    lost_work_seconds: String(job.lost_work_seconds),
    export: nullable(job.export, JSON.stringify),
    failure: nullable(job.failure, JSON.stringify),
  };
}

/** Fields of the hash that the public job does not have. */
function internalFields(job: Job): Record<string, string> {
  return {
    ...limitFields(job.spec),
    ...demandFields(job.spec),
    ...gpuFields(job.spec),
    ...overridesField(job.spec),
    pool: job.spec.resources.pool,
    // Ids, separated by spaces.
    dataset_ids: datasetsOf(job.spec).join(' '),
    model_ids: modelsOf(job.spec).join(' '),
    // Model or checkpoint with the base of its adapters, needed until the job is deleted; empty for none.
    base: baseOf(job.spec) ?? '',
    // Webhooks that the job names.
    notify: JSON.stringify(job.spec.notify.webhooks),
    // Number of its integrations, and one more if checkpoints answer prompts.
    forwards: String(job.spec.integrations.length + (job.spec.checkpoint.samples === undefined ? 0 : 1)),
    indexes: JSON.stringify(jobIndexes(job)),
    // Initial checkpoint, which may be of another job; empty for none.
    init_checkpoint: sourceCheckpoint(job.spec),
    // The newest execution (contracts/execution.ts); empty before the first claim.
    execution: '',
    // The worker that holds the lease; empty for none.
    worker: '',
    // ms, server clock.
    lease_until: '0',
    error_count: '0',
    // Name of the stream; a record that is restored after a loss of Redis has a new one.
    stream: randomPiece(4).toString('hex'),
    // Last sequence number of the stream, and the stamp of that entry (`append_entry` of core/commands/job.lua).
    seq: '0',
    seq_stamp: '0',
    // Last batch of metrics in this epoch.
    batch: '0',
    // '1' once a final state was set.
    final: isFinal(job.state) ? '1' : '',
    // JSON of `WorkerSlots[]`; empty for none.
    placements: '',
    // Worker that must claim `placements`; empty without an allocation, or after the claim.
    allocated_to: '',
    // Deadline of the claim: ms, server clock.
    allocated_until: '0',
    // JSON of the pairs of workers that could not connect to each other; empty for none.
    avoided: '',
  };
}

/** Reply of a command for one job: the flat hash and the history. */
export type RecordReply = [flat: string[], history: string[]];

/** Returns null when the record is empty, that is, when the job does not exist. */
export function fromRecord([flat, history]: RecordReply): Job | null {
  if (flat.length === 0) return null;
  const field = fieldReader(flat);
  const spec: ResolvedJobSpec = JSON.parse(field('spec'));
  return {
    id: field('id'),
    name: field('name'),
    state: field('state') as Job['state'],
    reason: field('reason') || null,
    state_version: Number(field('state_version')),
    state_history: history.map((text) => JSON.parse(text) as StateChange),
    created_at: field('created_at'),
    updated_at: field('updated_at'),
    spec,
    labels: spec.labels,
    progress: progressOf(spec, JSON.parse(field('progress'))),
    attempt: Number(field('attempt')),
    epoch: Number(field('epoch')),
    world_size: present(field('world_size'), Number),
    requested_ranks: Number(field('requested_ranks')),
    queue_position: present(field('queue_position'), Number),
    latest_checkpoint: present(field('latest_checkpoint'), JSON.parse),
    lost_work_seconds: Number(field('lost_work_seconds')),
    usage: usageOf(flat),
    export: present(field('export'), JSON.parse),
    failure: present(field('failure'), JSON.parse),
  };
}

/** Returns the job of a reply that must contain one. */
export function jobOf(reply: RecordReply): Job {
  const job = fromRecord(reply);
  if (!job) throw new ZerofleetError('internal_error', 'the job store answered without a job');
  return job;
}

/** Internal fields of the hash that a worker receives with its claim. */
export interface ClaimedFields {
  execution: Execution;
  control: Control;
  error_count: number;
  /** Workers lost with the job since its newest checkpoint, or since a user last queued it. */
  lost_workers: number;
  /** The value of `lost_workers` at the previous claim. */
  lost_workers_before: number;
  /** Allocation of the job's ranks; empty for a claim without one. */
  placements: WorkerSlots[];
}

export function claimOf([flat]: RecordReply): ClaimedFields {
  const field = fieldReader(flat);
  return {
    execution: field('execution') as Execution,
    control: controlOf(controlFields(CONTROL_FIELDS.map((name) => optional(flat, name)))),
    error_count: Number(field('error_count')),
    lost_workers: Number(optional(flat, 'lost_workers') ?? 0),
    lost_workers_before: Number(optional(flat, 'lost_workers_before') ?? 0),
    placements: present(field('placements'), JSON.parse) ?? [],
  };
}

function optional(flat: readonly string[], name: string): string | null {
  const at = flat.findIndex((text, i) => i % 2 === 0 && text === name);
  return at < 0 ? null : (flat[at + 1] ?? null);
}

function fieldReader(flat: readonly string[]): (name: string) => string {
  const fields = new Map<string, string>();
  for (let i = 0; i + 1 < flat.length; i += 2) fields.set(flat[i] as string, flat[i + 1] as string);
  return (name) => {
    const value = fields.get(name);
    if (value === undefined) throw new ZerofleetError('internal_error', `a job record has no field ${name}`);
    return value;
  };
}

function nullable<T>(value: T | null, format: (value: T) => string): string {
  return value === null ? '' : format(value);
}

function present<T>(text: string, parse: (text: string) => T): T | null {
  return text === '' ? null : parse(text);
}
