import type { Command } from 'commander';
import { type Pool, type PoolPod, plainText, type Worker } from '../../../contracts/index.js';
import { type EstimateDevice, GPU_RESERVE_BYTES } from '../../../job-document/index.js';
import { bytes } from '../../text/numbers.js';
import type { Context, Run } from '../context.js';
import { age, type Columns, memoryTable, tableOf } from '../format.js';
import { readSpec } from '../spec-file.js';
import { choice, count } from './arguments.js';

const DEVICES: readonly EstimateDevice[] = ['cpu', 'cuda'];

/** Commands for workers, pools and memory estimates. */
export function addFleetCommands(program: Command, run: Run): void {
  program.command('workers').summary('list workers').action(run(listWorkers));
  program.command('pools').summary('list pools with their slots').action(run(listPools));
  program
    .command('estimate')
    .summary('estimate the memory per rank of a job, for each number of ranks')
    .argument('<file>', 'the job document; - reads standard input')
    .option(
      '-r, --ranks <count...>',
      'only these numbers of ranks',
      (text: string, before: number[] = []) => [...before, count(text)],
    )
    .addOption(choice('-d, --device <device>', 'cuda: the memory of a GPU', DEVICES).default('cpu'))
    .action(run(estimate));
}

/** An empty list is normal with an autoscaler. */
const AUTOSCALED_HINT = '; an autoscaler has them come when there is a job (zerofleet up --autoscale is one)';

async function listWorkers(context: Context): Promise<void> {
  const workers = await context.client.workers();
  const columns: Columns<Worker> = {
    WORKER: ({ id }) => id,
    POOL: ({ pool }) => pool,
    HOST: ({ host }) => host,
    ADDRESS: ({ address }) => address,
    SLOTS: ({ used_slots, slots }) => `${used_slots}/${slots}`,
    ON: ({ gpus }) => devicesText(gpus),
    'ANSWERS ON': ({ answer_gpus }) => devicesText(answer_gpus),
    NUMERICS: ({ numerics }) => numerics ?? '–',
    '': ({ problem, draining }) => (problem !== null ? 'withdrawn' : draining ? 'leaving' : ''),
    SEEN: ({ last_seen }) => age(last_seen),
  };
  const problems = workers.flatMap(({ id, problem, gpus, answer_gpus, avoided }) => [
    ...(problem === null ? [] : [`${id}: ${problem}`]),
    ...avoided
      // Both workers of a pair report it.
      .filter(({ worker_id }) => id < worker_id)
      .map(
        ({ worker_id, job_id, until }) =>
          `${id} and ${worker_id} could not reach each other: ${job_id} avoids placing ranks on both until ${until}`,
      ),
    ...[...gpus, ...answer_gpus].flatMap(({ uuid, problem }) =>
      problem === null ? [] : `${uuid} of ${id}: ${problem}`,
    ),
  ]);
  const pools = await context.client.pools();
  context.show(workers, () =>
    [
      tableOf(workers, columns, `no workers${AUTOSCALED_HINT}`, context.width),
      ...problems.map(plainText),
      ...pools.flatMap(launchProblems),
    ].join('\n'),
  );
}

/** GPUs by name; `CPU` without any. */
function devicesText(gpus: Worker['gpus']): string {
  const names = gpus.map(({ name }) => name);
  const counts = [...new Set(names)].map(
    (name) => [name, names.filter((other) => other === name).length] as const,
  );
  return gpus.length === 0 ? 'CPU' : gpuText(counts);
}

/** `8 × NVIDIA H100 80GB HBM3` */
const gpuText = (counts: readonly (readonly [name: string, count: number])[]) =>
  counts.map(([name, count]) => `${count} × ${name}`).join(', ');

async function listPools(context: Context): Promise<void> {
  const columns: Columns<Pool> = {
    POOL: ({ name }) => name,
    WORKERS: ({ workers }) => String(workers),
    SLOTS: ({ used_slots, slots }) => `${used_slots}/${slots}`,
    RUNNING: ({ running }) => String(running),
    WAITING: ({ waiting }) => String(waiting),
    ON: poolGpus,
    NUMERICS: ({ groups }) => groups.map(({ numerics }) => numerics ?? '–').join(', '),
    MACHINES: machineCounts,
  };
  const pools = await context.client.pools();
  context.show(pools, () =>
    [
      tableOf(pools, columns, `no pools${AUTOSCALED_HINT}`, context.width),
      ...pools.flatMap(launchProblems),
      ...podLines(
        pools.flatMap(({ machines }) => machines?.pods ?? []),
        context.width,
      ),
    ].join('\n'),
  );
}

/** A table of the pods, and the logs of those that have ended. */
function podLines(pods: readonly PoolPod[], width: number): string[] {
  if (pods.length === 0) return [];
  const columns: Columns<PoolPod> = {
    POD: ({ name }) => name,
    TYPE: ({ type }) => type,
    NODE: ({ node }) => node ?? '–',
    PHASE: ({ phase }) => phase,
    REASON: ({ reason, message }) => [reason, message].filter((part) => part !== null).join(': '),
  };
  const logs = pods.flatMap(({ name, log }) =>
    log === null ? [] : ['', `log of ${name}:`, ...log.split('\n').map((line) => `  ${plainText(line)}`)],
  );
  return ['', tableOf(pods, columns, '', width), ...logs];
}

/** Lines about machines that are requested and do not come. */
function launchProblems({ name, machines }: Pool): string[] {
  return (machines?.problems ?? []).map(({ type, code, message }) =>
    plainText(`${name}: machines of the type ${type} cannot be launched (${code}): ${message}`),
  );
}

/** `3, 1 starting, 2 requested` */
function machineCounts({ machines }: Pool): string {
  if (machines === null) return '–';
  const sum = (state: 'running' | 'starting' | 'requested' | 'terminating') =>
    machines.types.reduce((total, type) => total + type[state], 0);
  const others = (['starting', 'requested', 'terminating'] as const).filter((state) => sum(state) > 0);
  return [String(sum('running')), ...others.map((state) => `${sum(state)} ${state}`)].join(', ');
}

/** GPUs of a pool's workers; the number of GPUs with problems is appended. */
function poolGpus({ groups }: Pool): string {
  const gpus = groups.flatMap((group) => group.gpus);
  if (gpus.length === 0) return groups.length === 0 ? '–' : 'CPU';
  const unhealthy = gpus.reduce((sum, kind) => sum + kind.unhealthy, 0);
  const text = gpuText(gpus.map(({ name, count }) => [name, count]));
  return unhealthy === 0 ? text : `${text} (${unhealthy} with a problem)`;
}

interface EstimateOptions {
  ranks?: number[];
  device: EstimateDevice;
}

async function estimate(context: Context, file: string, { ranks, device }: EstimateOptions): Promise<void> {
  const found = await context.client.estimate(await readSpec(file, context.environment), ranks, device);
  context.show(found, () => memoryTable(found, context.width));
  if (device === 'cuda')
    context.note(
      `a GPU needs ${bytes(GPU_RESERVE_BYTES)} more, for the CUDA runtime, its libraries and NCCL`,
    );
}
