import { type Command, Option } from 'commander';
import { stemOfName } from '../../../contracts/dataset-names.js';
import { type Dataset, isSourceUri, type JobSpec } from '../../../contracts/index.js';
import { bytes } from '../../text/numbers.js';
import { CliError, type Context, EXIT, type Run } from '../context.js';
import { documentsOf } from '../format.js';
import { GRADER_FILE, readGrader } from '../grader-file.js';
import { withSettings } from '../settings.js';
import { baseNamed, datasetNamed } from '../sources.js';
import { choice, count, number, several } from './arguments.js';
import { submitSpec } from './jobs.js';

interface TrainOptions {
  model: string;
  lora?: boolean;
  dora?: boolean;
  epochs?: number;
  steps?: number;
  name?: string;
  ranks?: number;
  pool?: string;
  exportFormat?: string;
  grader?: string;
  groupSize?: number;
  promptsPerStep?: number;
  maxTokens?: number;
  temperature?: number;
  set?: string[];
  watch?: boolean;
  dryRun?: boolean;
}

type Objective = NonNullable<NonNullable<JobSpec['train']>['objective']>;

const DEFAULT_EPOCHS = 3;
/** Longest name that the API accepts. */
const MAX_NAME = 100;

/** The command that needs no document. */
export function addTrainCommand(program: Command, run: Run): void {
  program
    .command('train')
    .summary('train on a file: upload it, choose a base, start the job')
    .argument('<data>', 'path of a file, name or id of a dataset, or its URI (hf://datasets/…, s3://…)')
    .option(
      '-m, --model <base>',
      'a preset, hf://owner/name, s3://…, a folder, an uploaded model, or JOB or JOB@STEP',
      'llama-tiny',
    )
    .option('--lora', 'train adapters (LoRA) over the base')
    .addOption(new Option('--dora', 'train adapters (DoRA) over the base').conflicts('lora'))
    .option('-e, --epochs <count>', `passes through the data; ${DEFAULT_EPOCHS} by default`, count)
    .addOption(
      new Option('-s, --steps <count>', 'optimizer steps, in place of epochs')
        .argParser(count)
        .conflicts('epochs'),
    )
    .option('--name <name>', 'name of the job; by default that of the data')
    .option('-r, --ranks <count>', 'ranks to train on', count)
    .option('--pool <pool>', 'pool of workers')
    .addOption(
      choice('--export-format <format>', 'format of the exported model', ['safetensors', 'peft', 'gguf']),
    )
    .option('-g, --grader <file>', `reinforcement learning with rewards of ${GRADER_FILE}`)
    .option('--group-size <count>', 'with --grader: answers to each prompt', count)
    .option('--prompts-per-step <count>', 'with --grader: prompts of a step', count)
    .option('--max-tokens <count>', 'with --grader: the maximum number of tokens of an answer', count)
    .option('--temperature <number>', 'with --grader: temperature of the answers', number)
    .option('--set <path=value>', 'change the document, e.g. train.optimizer.lr=3e-4; repeatable', several)
    .option('-w, --watch', 'watch the job until it ends')
    .option('--dry-run', 'upload the file, but only validate the job and estimate its data, time and memory')
    .addHelpText('after', EXAMPLES)
    .action(run(train));
}

const EXAMPLES = `
Examples:
  zerofleet train chats.jsonl --model hf://Qwen/Qwen3-0.6B --lora --watch
  zerofleet train alpaca.csv --model my-base --epochs 1
  zerofleet train more.jsonl --model my-run@400 --set train.optimizer.lr=1e-4
  zerofleet train prompts.jsonl --model my-run --grader grade.py --group-size 8 --watch
`;

async function train(context: Context, given: string, options: TrainOptions): Promise<void> {
  const reinforcement = await reinforcementOf(options);
  const dataset = isSourceUri(given) ? { uri: given } : await datasetNamed(context, given);
  if ('id' in dataset) context.note(describe(dataset));
  const { epochs = DEFAULT_EPOCHS, steps, lora, dora, ranks, pool, exportFormat } = options;
  const spec: JobSpec = {
    name: options.name ?? nameOf(dataset),
    model: await baseNamed(context, options.model),
    data: 'id' in dataset ? { dataset: dataset.id } : { uri: dataset.uri },
    train: {
      ...(steps === undefined ? { epochs } : { steps }),
      ...((lora || dora) && { adapter: { type: dora ? 'dora' : 'lora' } }),
      ...(reinforcement ? { objective: reinforcement } : objectiveOf(dataset)),
    },
    ...((ranks !== undefined || pool !== undefined) && {
      resources: {
        ...(pool !== undefined && { pool }),
        ...(ranks !== undefined && { ranks: { preferred: ranks } }),
      },
    }),
    ...(exportFormat !== undefined && {
      export: { format: exportFormat as NonNullable<JobSpec['export']>['format'] },
    }),
  };
  await submitSpec(context, withSettings(spec, options.set ?? []), options);
}

function describe(dataset: Dataset): string {
  return `dataset ${dataset.name}: ${dataset.format}, ${bytes(dataset.bytes)}, documents: ${documentsOf(dataset)}`;
}

/** A job is named after its dataset, or after the last part of a URI. */
function nameOf(dataset: Dataset | { uri: string }): string {
  const name = 'id' in dataset ? dataset.name : (dataset.uri.split('/').at(-1) ?? '');
  return stemOfName(name).slice(0, MAX_NAME);
}

/**
 * Returns reinforcement learning with the grader; null without one.
 * @throws CliError for an unreadable grader, and for options that need one
 */
async function reinforcementOf(options: TrainOptions): Promise<Objective | null> {
  const { grader, groupSize, promptsPerStep, maxTokens, temperature } = options;
  const sampling = {
    ...(groupSize !== undefined && { group_size: groupSize }),
    ...(promptsPerStep !== undefined && { prompts_per_step: promptsPerStep }),
    ...(maxTokens !== undefined && { max_tokens: maxTokens }),
    ...(temperature !== undefined && { temperature }),
  };
  if (grader !== undefined) return { type: 'grpo', grader: await readGrader(grader), ...sampling };
  const [first] = Object.keys(sampling);
  if (first === undefined) return null;
  throw new CliError(`--${first.replaceAll('_', '-')} needs --grader: ${GRADER_FILE}`, EXIT.usage);
}

/** The usual objective of preferences. */
function objectiveOf(dataset: Dataset | { uri: string }): Pick<NonNullable<JobSpec['train']>, 'objective'> {
  if (!('id' in dataset)) return {};
  if (dataset.num_preferences > 0) return { objective: { type: 'dpo' } };
  return dataset.num_labelled > 0 ? { objective: { type: 'kto' } } : {};
}
