import { isDeepStrictEqual } from 'node:util';
import type { Command } from 'commander';
import type { Call, CallResult, Job, JobSpec, StoredCall } from '../../../contracts/index.js';
import { reinforcementOf } from '../../../job-document/index.js';
import { CliError, type Context, EXIT, type Run } from '../context.js';
import { NamedArgument } from '../names.js';
import { RewardCheck } from '../reward-check.js';
import { count } from './arguments.js';

interface ReplayOptions {
  ranks?: number;
}

/** What a replay has found. */
interface Replay {
  session: string;
  replay: string;
  calls: number;
  /** Null if all results are the same. */
  difference: Difference | null;
}

interface Difference {
  call: number;
  type: StoredCall['type'];
  field: string;
  before: unknown;
  now: unknown;
}

/** Command that computes the log of a session again. */
export function addReplayCommand(program: Command, run: Run): void {
  program
    .command('replay')
    .summary('compute the calls of a session again, and compare every result')
    .addArgument(new NamedArgument('job', 'the session'))
    .option('-r, --ranks <count>', 'ranks of the new session; by default those of the session', count)
    .addHelpText('after', '\nExample:\n  zerofleet replay my-session --ranks 3\n')
    .action(run(replay));
}

async function replay(context: Context, id: string, { ranks }: ReplayOptions): Promise<void> {
  const { client, signal } = context;
  const session = await client.jobs.get(id, { signal });
  const last = await lastAnswered(context, id);
  const made = await client.jobs.create(await documentOf(context, session, ranks), { signal });
  context.note(`${last} calls of ${id} on ${made.requested_ranks} ranks, as ${made.id}`);
  context.interruptMessage = `the replay goes on as ${made.id}; end it with: zerofleet cancel ${made.id}`;
  const rewards = reinforcementOf(session.spec.train) && new RewardCheck(client, session);
  const difference = await compareAll(context, { from: id, to: made.id, last, rewards });
  const found: Replay = { session: id, replay: made.id, calls: last, difference };
  await endReplay(context, made.id);
  if (difference === null) return context.show(found, () => `all ${last} results are the same, bit for bit`);
  context.show(found, () => textOf(difference));
  throw new CliError(`${made.id} differs from ${id} at call ${difference.call}`, EXIT.failed);
}

/** Returns the number of the last call with a result. */
async function lastAnswered({ client }: Context, id: string): Promise<number> {
  for await (const { number, state } of client.calls.list(id, { limit: 100 }))
    if (state === 'done') return number;
  throw new CliError(`session ${id} has no results to compare with`, EXIT.failed);
}

async function documentOf({ client }: Context, { id, name, spec }: Job, ranks?: number): Promise<JobSpec> {
  const stored = await client.jobs.document(id);
  if (stored === null) throw new CliError(`the document of ${id} is not stored`, EXIT.failed);
  const given = reinforcementOf(spec.train) === null ? stored : asSession(stored, spec);
  const title = `replay of ${name === '' ? id : name}`.slice(0, 100);
  if (ranks === undefined) return { ...given, name: title };
  const { expert_parallel_size: min } = spec.zero;
  return {
    ...given,
    name: title,
    resources: { ...given.resources, ranks: { min, preferred: ranks, max: ranks } },
  };
}

/** Returns the document of a session that a client gives the calls of an objective. Its leaves are those of the job. */
function asSession(
  { data, train = {}, checkpoint = {}, ...document }: JobSpec,
  resolved: Job['spec'],
): JobSpec {
  const { keep: _keep, ...saves } = checkpoint;
  const { dataset: _, uri: _uri, format: _format, seed: _seed, packing: _packing, ...texts } = data;
  const { global_batch_size, micro_batch_size } = resolved.train;
  const {
    objective: _objective,
    steps: _steps,
    epochs: _epochs,
    lr_schedule: _schedule,
    evaluation: _evaluation,
    ...settings
  } = train;
  return {
    ...document,
    data: texts,
    checkpoint: saves,
    train: { ...settings, global_batch_size, micro_batch_size, session: {} },
  };
}

interface Compared {
  from: string;
  to: string;
  last: number;
  /** Null: clients have written the calls. */
  rewards: RewardCheck | null;
}

/** Returns the first difference; null for none. */
async function compareAll(
  { client, signal }: Context,
  { from, to, last, rewards }: Compared,
): Promise<Difference | null> {
  /** Checkpoints of the replay by those of the session. */
  const checkpoints = new Map<string, string>();
  for (let number = 1; number <= last; number += 1) {
    const stored = await client.calls.get(from, number);
    const wrong = (await rewards?.differenceOf(number, stored)) ?? null;
    if (wrong !== null) return { call: number, type: stored.type, ...wrong };
    await client.calls.put(to, number, callOf(stored, checkpoints, number));
    const before = await client.calls.result(from, number, { signal });
    const now = await client.calls.result(to, number, { signal });
    if ('checkpoint' in before && 'checkpoint' in now) checkpoints.set(before.checkpoint, now.checkpoint);
    const found = differenceOf(before, now);
    if (found !== null) return { call: number, type: stored.type, ...found };
  }
  return null;
}

/** Returns the call as a client sends it to the replay. */
function callOf(stored: StoredCall, checkpoints: ReadonlyMap<string, string>, number: number): Call {
  if (stored.type !== 'load_state') return stored;
  const { prefix: _, ...call } = stored;
  const checkpoint = checkpoints.get(call.checkpoint);
  if (checkpoint !== undefined) return { ...call, checkpoint };
  throw new CliError(
    `call ${number} loads ${call.checkpoint}, which no save_state before it has made, so the replay has no such checkpoint`,
    EXIT.failed,
  );
}

/** Returns the first field that differs. Ids of checkpoints always do. */
function differenceOf(
  before: CallResult,
  now: CallResult,
): Pick<Difference, 'field' | 'before' | 'now'> | null {
  const [one, other] = [before, now].map((result): Record<string, unknown> => ({ ...result }));
  for (const field of new Set([...Object.keys(one ?? {}), ...Object.keys(other ?? {})])) {
    if (field === 'checkpoint' || isDeepStrictEqual(one?.[field], other?.[field])) continue;
    return { field, before: one?.[field], now: other?.[field] };
  }
  return null;
}

function textOf({ call, type, field, before, now }: Difference): string {
  const shown = (value: unknown) => (JSON.stringify(value) ?? 'absent').slice(0, 200);
  return [
    `call ${call} (${type}) differs in ${field}:`,
    `  session  ${shown(before)}`,
    `  replay   ${shown(now)}`,
  ].join('\n');
}

/** Ends the new session, unless the log has finished it. */
async function endReplay({ client }: Context, id: string): Promise<void> {
  const { state } = await client.jobs.get(id);
  if (state !== 'succeeded' && state !== 'failed') await client.jobs.cancel(id);
}
