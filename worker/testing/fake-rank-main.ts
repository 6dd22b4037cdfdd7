/**
 * Rank process without the native core. Its faults come from the JSON file of `ZF_TEST_FAULTS`. Each happens once,
 * because an agent restarts a rank with the same environment, and a repeated fault would never be survived.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AgentMessage, LocalMessage } from '../../contracts/rank-protocol.js';
import { type ObjectStore, ObjectStoreError, openObjectStore } from '../../platform/object-store/index.js';
import { processChannel } from '../rank/channel.js';
import { processJournal, withJournal } from '../rank/journal.js';
import { runRank } from '../rank/run-rank.js';
import { fakeCore } from './fake-core.js';

/** Error codes by the name of the fault. */
const ERRORS = {
  throw: 'out_of_memory',
  diverge: 'diverged',
  misfit: 'checkpoint_mismatch',
  lose_gpu: 'gpu_lost',
  bad_kernel: 'gpu_fault',
} as const;

const POLL_MS = 5;

type Fault = 'exit' | 'kill' | 'hang' | keyof typeof ERRORS;

export interface RankFaults {
  /** Duration of a step in milliseconds. */
  step_ms?: number;
  /** Each step from `from` on takes up to `ms`, until `Fleet.speedUp`, so that the test has time to act on the job. */
  slow?: { from: number; ms: number };
  /** Losses by step, of each evaluation file; 6 / step by default. */
  eval_losses?: Record<number, number>[];
  /** Environment variables that each rank prints. */
  print?: string[];
  faults?: { rank: number; step: number; kind: Fault }[];
}

const file = process.env.ZF_TEST_FAULTS;
const plan: RankFaults = file ? JSON.parse(readFileSync(file, 'utf8')) : {};

function happen(fault: Fault): void {
  switch (fault) {
    case 'exit':
      process.exit(3);
      break;
    case 'kill':
    case 'hang':
      process.kill(process.pid, fault === 'kill' ? 'SIGKILL' : 'SIGSTOP');
      break;
    default:
      throw Object.assign(new Error('as the test asked'), { code: ERRORS[fault] });
  }
}

/** Returns the step up to which steps are fast. The test writes the file. */
function fastUpTo(): number {
  return existsSync(`${file}.speedUp`) ? Number(readFileSync(`${file}.speedUp`, 'utf8')) : 0;
}

async function pass(step: number): Promise<void> {
  const { step_ms = 1, slow } = plan;
  if (!slow || step < slow.from) return sleep(step_ms);
  for (const end = Date.now() + slow.ms; Date.now() < end && step >= fastUpTo(); ) await sleep(POLL_MS);
}

async function beforeStep(step: number, { rank }: { rank: number }): Promise<void> {
  await pass(step);
  for (const fault of plan.faults ?? []) {
    if (fault.rank !== rank || fault.step !== step) continue;
    const done = `${file}.${rank}-${step}-${fault.kind}.done`;
    if (existsSync(done)) continue;
    writeFileSync(done, '');
    happen(fault.kind);
  }
}

/** Opens the object store, which is full while the test's file exists. */
async function openWithFaults(...args: Parameters<typeof openObjectStore>): Promise<ObjectStore> {
  const objects = await openObjectStore(...args);
  const put: ObjectStore['put'] = async (...putArgs) => {
    if (existsSync(`${file}.disk-full`)) throw new ObjectStoreError('disk_full', 'as the test asked');
    return objects.put(...putArgs);
  };
  return new Proxy(objects, {
    get: (target, name) => {
      const value = name === 'put' ? put : Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

const core = fakeCore({ beforeStep, evalLoss: (step, file) => plan.eval_losses?.[file]?.[step] });
const exitCode = runRank(withJournal(processChannel(), processJournal), core, openWithFaults);
// The start message completes the environment.
process.on('message', ({ kind }: AgentMessage | LocalMessage) => {
  if (kind !== 'start') return;
  for (const name of plan.print ?? []) console.log(`${name}=${process.env[name]}`);
});
process.exit(await exitCode);
