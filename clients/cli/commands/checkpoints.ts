import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { VALUES } from '../../../contracts/generated/job-defaults.js';
import type { CheckpointExport, ExportFile, ExportRequest } from '../../../contracts/index.js';
import { bytes } from '../../text/numbers.js';
import { collect } from '../../typescript/index.js';
import { CliError, type Context, EXIT, type Run } from '../context.js';
import { age, losses, table } from '../format.js';
import { NamedArgument } from '../names.js';
import { choice } from './arguments.js';

const EXPORT_POLL_MS = 500;
/** A large model for DeepSpeed consists of thousands of files; `--json` lists them all. */
const SHOWN_FILES = 20;

/** Commands for checkpoints. */
export function addCheckpointCommands(program: Command, run: Run): void {
  program
    .command('checkpoints')
    .summary("list a job's checkpoints, or those of all jobs, newest first")
    .addArgument(new NamedArgument('job').argOptional())
    .action(run(listCheckpoints));
  program
    .command('verify')
    .summary('read every byte of a checkpoint and check it')
    .addArgument(new NamedArgument('checkpoint'))
    .action(run(verify));
  program
    .command('pin')
    .summary('keep a checkpoint from the retention rule')
    .addArgument(new NamedArgument('checkpoint'))
    .option('--off', 'unpin it')
    .action(
      run(async (context, id: string, { off }: { off?: boolean }) => {
        const checkpoint = await context.client.checkpoints.pin(id, off !== true);
        context.show(checkpoint, () => `${id}  ${checkpoint.pinned ? 'pinned' : 'not pinned'}`);
      }),
    );
  program
    .command('export')
    .summary('export the weights of a checkpoint in another format, and wait for it')
    .addArgument(new NamedArgument('checkpoint'))
    .addOption(choice('--format <format>', 'file format', VALUES.ExportFormat).default('safetensors'))
    .addOption(choice('--dtype <dtype>', 'dtype of the weights', VALUES.ExportDtype))
    .addOption(
      choice('--weights <weights>', 'the weights as trained, or their average', VALUES.ExportWeights),
    )
    .option('--tensorboard', 'with the metrics of the training, as an event file of TensorBoard')
    .action(run(exportCheckpoint));
}

async function listCheckpoints(context: Context, job?: string): Promise<void> {
  const { jobs, checkpoints } = context.client;
  const found = await collect(job === undefined ? checkpoints.list() : jobs.checkpoints(job));
  const rows = found.map((checkpoint) => [
    checkpoint.id,
    ...(job === undefined ? [checkpoint.job_id] : []),
    String(checkpoint.step),
    String(checkpoint.world_size),
    bytes(checkpoint.bytes),
    checkpoint.state_digest,
    losses(checkpoint.eval_losses),
    checkpoint.pinned ? 'yes' : '',
    age(checkpoint.committed_at),
  ]);
  const head = ['STEP', 'RANKS', 'SIZE', 'DIGEST', 'EVAL LOSSES', 'PINNED', 'COMMITTED'];
  const columns = ['CHECKPOINT', ...(job === undefined ? ['JOB'] : []), ...head];
  context.show(found, () => table(columns, rows, 'no checkpoints', context.width));
}

async function verify(context: Context, id: string): Promise<void> {
  const verdict = await context.client.checkpoints.verify(id);
  context.show(verdict, () =>
    verdict.valid
      ? `valid, ${bytes(verdict.bytes)} read`
      : verdict.problems.map(({ object, code, message }) => `${object}  ${code}: ${message}`).join('\n'),
  );
  if (!verdict.valid) throw new CliError(`${id} is damaged`, EXIT.failed);
}

async function exportCheckpoint(context: Context, id: string, request: ExportRequest): Promise<void> {
  const { client, signal } = context;
  let done = await client.checkpoints.export(id, request);
  const isSame = (other: CheckpointExport) => other.prefix === done.prefix;
  while (done.state === 'queued' || done.state === 'running') {
    await sleep(EXPORT_POLL_MS, undefined, { signal });
    done = (await client.checkpoints.exports(id)).find(isSame) ?? done;
  }
  if (done.state === 'failed') throw new CliError(done.error?.message ?? 'the export failed', EXIT.failed);
  context.show(done, () => `${done.prefix}\n${fileTable(done.files, context.width)}`);
  const { format, dtype, weights, tensorboard } = done;
  const kind = `--format ${format} --dtype ${dtype}${weights === 'trained' ? '' : ` --weights ${weights}`}${tensorboard ? ' --tensorboard' : ''}`;
  context.note(`fetch it with: zerofleet download ${id} ${kind}`);
}

function fileTable(files: readonly ExportFile[], width: number): string {
  const rows = files.slice(0, SHOWN_FILES).map((file) => [file.name, bytes(file.bytes)]);
  const shown = table(['FILE', 'SIZE'], rows, 'no files', width);
  if (files.length <= SHOWN_FILES) return shown;
  const total = files.reduce((sum, file) => sum + file.bytes, 0);
  return `${shown}\n${files.length - SHOWN_FILES} more files, ${bytes(total)} in all`;
}
