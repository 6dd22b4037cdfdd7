import type { Command } from 'commander';
import { compareFigures } from '../../../contracts/evaluation-metrics.js';
import type { Sweep, SweepPlan, SweepRun, SweepSpec } from '../../../contracts/index.js';
import { collect, rangeOf } from '../../typescript/index.js';
import { CliError, type Context, EXIT, type Run } from '../context.js';
import { age, type Columns, tableOf } from '../format.js';
import { NamedArgument } from '../names.js';
import { withSettings } from '../settings.js';
import { withIds } from '../sources.js';
import { readSpec } from '../spec-file.js';
import { count, several, whole } from './arguments.js';

interface SweepOptions {
  over: string[];
  runs?: number;
  halving?: boolean;
  minSteps?: number;
  factor?: number;
  seed?: number;
  metric?: string;
  concurrent?: number;
  name?: string;
  set?: string[];
  watch?: boolean;
  dryRun?: boolean;
}

/** Commands for sweeps. */
export function addSweepCommands(program: Command, run: Run): void {
  program
    .command('sweep')
    .summary('train a document with different values, and find the best ones')
    .argument('<file>', 'the job document; - reads standard input')
    .requiredOption(
      '--over <path=values>',
      'values of a field: a,b,c or min..max[:log|:integer]; repeatable',
      several,
    )
    .option('-n, --runs <count>', 'draw this many combinations; by default all of them are runs', count)
    .option('--halving', 'stop the worse runs early (successive halving)')
    .option('--min-steps <count>', 'steps before the first comparison, with --halving', count)
    .option('--factor <count>', 'one of this many runs continues after a comparison; 3 by default', count)
    .option('--seed <seed>', 'seed of the drawn values', whole)
    .option('--metric <name>', 'evaluation that compares the runs; by default the first of the job')
    .option('-c, --concurrent <count>', 'runs at the same time; 4 by default', count)
    .option('--name <name>', 'name of the sweep; by default that of the document')
    .option('--set <path=value>', 'change the document, e.g. train.steps=400; repeatable', several)
    .option('-w, --watch', 'watch the sweep until it ends')
    .option('--dry-run', 'only check all runs, and list them')
    .addHelpText('after', EXAMPLES)
    .action(run(create));
  const sweeps = program.command('sweeps').summary('list and manage sweeps');
  sweeps.command('list', { isDefault: true }).summary('list them, newest first').action(run(list));
  const on = (name: string, summary: string) =>
    sweeps.command(name).summary(summary).addArgument(new NamedArgument('sweep'));
  on('get', 'show the runs, the best one first').action(
    run(async (context, id: string) => showSweep(context, await context.client.sweeps.get(id))),
  );
  on('watch', 'watch a sweep until it ends; Ctrl-C leaves it running').action(run(watch));
  on('pause', 'begin no more runs, and pause its jobs').action(
    run(async (context, id: string) => showState(context, await context.client.sweeps.pause(id))),
  );
  on('resume', 'resume a paused sweep').action(
    run(async (context, id: string) => showState(context, await context.client.sweeps.resume(id))),
  );
  on('cancel', 'end it, and cancel its unfinished jobs').action(
    run(async (context, id: string) => showState(context, await context.client.sweeps.cancel(id))),
  );
  on('delete', 'delete the record of a sweep that has ended; its jobs stay').action(
    run((context, id: string) => context.client.sweeps.delete(id)),
  );
}

const EXAMPLES = `
Examples:
  zerofleet sweep job.yaml --over train.optimizer.lr=1e-4,3e-4,1e-3 --over train.seed=1,2 --watch
  zerofleet sweep job.yaml --over train.optimizer.lr=1e-5..1e-2:log --runs 27 --halving --min-steps 100
`;

async function create(context: Context, file: string, options: SweepOptions): Promise<void> {
  const document = withSettings(await readSpec(file, context.environment), options.set ?? []);
  const { runs, halving, minSteps, factor, seed, metric, concurrent, name } = options;
  const spec: SweepSpec = {
    spec: await withIds(context, document),
    space: spaceOf(options.over),
    method: halving ? 'successive_halving' : runs === undefined ? 'grid' : 'random',
    ...(name !== undefined && { name }),
    ...(runs !== undefined && { runs }),
    ...(minSteps !== undefined && { min_steps: minSteps }),
    ...(factor !== undefined && { factor }),
    ...(seed !== undefined && { seed }),
    ...(metric !== undefined && { metric }),
    ...(concurrent !== undefined && { max_concurrent: concurrent }),
  };
  const { sweeps } = context.client;
  if (options.dryRun) {
    const plan = await sweeps.dryRun(spec);
    return context.show(plan, () => planText(plan));
  }
  const sweep = await sweeps.create(spec);
  context.show(sweep, () => sweep.id);
  context.note(`${sweep.runs.length} runs, watch them with: zerofleet sweeps watch ${sweep.id}`);
  if (options.watch) await watch(context, sweep.id);
}

function spaceOf(texts: readonly string[]): SweepSpec['space'] {
  const fields = texts.map((text) => {
    const found = rangeOf(text);
    if (found !== null) return found;
    const how = 'write path=a,b,c, or path=min..max, e.g. train.optimizer.lr=1e-5..1e-3:log';
    throw new CliError(`'${text}' names no values: ${how}`, EXIT.usage);
  });
  return Object.fromEntries(fields);
}

function planText({ metric, rungs, runs }: SweepPlan): string {
  const stops = rungs.flatMap(({ step, runs }) => (step === null ? [] : [`${runs} until step ${step}`]));
  const last = rungs.at(-1)?.runs ?? runs.length;
  const how = [...stops, `${last} to the end`].join(', ');
  return [...runs.map(({ name }) => name), '', `${runs.length} runs compared by ${metric}: ${how}`].join(
    '\n',
  );
}

async function list(context: Context): Promise<void> {
  const columns: Columns<Sweep> = {
    SWEEP: ({ id }) => id,
    NAME: ({ name }) => name,
    STATE: ({ state }) => state,
    ENDED: ({ runs }) => `${runs.filter(({ state }) => hasEnded(state)).length} of ${runs.length}`,
    BEST: ({ runs, best }) => lossText(runs.find(({ job_id }) => job_id === best)),
    CREATED: ({ created_at }) => age(created_at),
  };
  context.list(await collect(context.client.sweeps.list()), columns, 'no sweeps');
}

const hasEnded = (state: SweepRun['state']) => !['waiting', 'running', 'held'].includes(state);

const last = (run: SweepRun | undefined) => run?.evaluations.at(-1);

function lossText(run: SweepRun | undefined): string {
  const value = last(run)?.value;
  return value === undefined ? '–' : value === null ? 'NaN' : value.toPrecision(5);
}

function showState(context: Context, sweep: Sweep): void {
  context.show(sweep, () => `${sweep.id}  ${sweep.state}`);
}

/** The runs that came furthest first, of these the best first. */
function ranked({ runs, metric }: Sweep): SweepRun[] {
  const order = (a: SweepRun, b: SweepRun) => compareFigures(metric, last(a)?.value, last(b)?.value);
  return [...runs].sort((a, b) => b.evaluations.length - a.evaluations.length || order(a, b));
}

function showSweep(context: Context, sweep: Sweep): void {
  const { metric, best, problem } = sweep;
  const columns: Columns<SweepRun> = {
    JOB: ({ job_id }) => job_id,
    NAME: ({ name, job_id }) => (job_id === best ? `* ${name}` : `  ${name}`),
    STATE: ({ state, failure }) => (failure === null ? state : `${state} (${failure.code})`),
    STEP: (run) => String(last(run)?.step ?? '–'),
    [metric.toUpperCase()]: lossText,
  };
  context.show(sweep, () => {
    const head = `${sweep.id}  ${sweep.name}  ${sweep.state}`;
    const why = problem === null ? [] : [`no run can begin: ${problem.message}`];
    return [head, ...why, '', tableOf(ranked(sweep), columns, 'no runs', context.width)].join('\n');
  });
}

async function watch(context: Context, id: string): Promise<void> {
  const { client, signal } = context;
  context.interruptMessage = `the sweep goes on; watch it again with: zerofleet sweeps watch ${id}`;
  const shown = new Map<string, string>();
  const onSweep = ({ runs, metric }: Sweep) => {
    for (const run of runs) {
      const { step } = last(run) ?? {};
      const at = step === undefined ? '' : `  step ${step}  ${metric} ${lossText(run)}`;
      const line = `${run.name}  ${run.state}${at}`;
      if (run.state !== 'waiting' && shown.get(run.job_id) !== line) context.note(line);
      shown.set(run.job_id, line);
    }
  };
  const sweep = await client.sweeps.wait(id, { onSweep, signal });
  showSweep(context, sweep);
  if (sweep.state !== 'succeeded') throw new CliError(`the sweep is ${sweep.state}`, EXIT.failed);
  context.note(`* is the best: zerofleet chat ${sweep.best}, or zerofleet download ${sweep.best} -o model/`);
}
