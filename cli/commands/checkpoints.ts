import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import type { CheckpointExport, ExportFile, ExportRequest } from '../../contracts/index.js';
import { CliError, type Context, EXIT } from '../context.js';
import { age, bytes, table } from '../format.js';
import type { Run } from '../program.js';
import { count, number, oneOf } from './arguments.js';

const EXPORT_POLL_MS = 500;
/** A large model for DeepSpeed is thousands of files; `--json` has them all. */
const SHOWN_FILES = 20;
export const FORMATS = ['safetensors', 'deepspeed_universal'] as const;
export const DTYPES = ['bf16', 'fp16', 'fp32'] as const;

/** The commands about checkpoints. */
export function addCheckpointCommands(program: Command, run: Run): void {
  program
    .command('checkpoints')
    .summary("list a job's checkpoints, newest first")
    .argument('<job>', 'its id')
    .action(run(listCheckpoints));
  program
    .command('verify')
    .summary('read every byte of a checkpoint and check it')
    .argument('<checkpoint>', 'its id')
    .action(run(verify));
  program
    .command('pin')
    .summary('keep a checkpoint from the retention rule')
    .argument('<checkpoint>', 'its id')
    .option('--off', 'no longer')
    .action(
      run(async (context, id: string, { off }: { off?: boolean }) => {
        const checkpoint = await context.client.checkpoints.pin(id, off !== true);
        context.show(checkpoint, () => `${id}  ${checkpoint.pinned ? 'pinned' : 'not pinned'}`);
      }),
    );
  program
    .command('sample')
    .summary('let the model of a checkpoint write')
    .argument('<checkpoint>', 'its id')
    .argument('<prompt>', 'how the text begins')
    .option('-n, --max-tokens <count>', 'at most so many tokens', count)
    .option('-t, --temperature <number>', '0 takes the likeliest token each time', number)
    .option('--top-k <count>', 'draw among so many of the likeliest', count)
    .option('--top-p <share>', 'draw among the likeliest that add up to this share', number)
    .option('--seed <count>', 'the same seed gives the same text', count)
    .action(run(sample));
  program
    .command('export')
    .summary('write the weights of a checkpoint in another format, and wait for it')
    .argument('<checkpoint>', 'its id')
    .option('--format <format>', FORMATS.join(' or '), oneOf(FORMATS), 'safetensors')
    .option('--dtype <dtype>', DTYPES.join(', '), oneOf(DTYPES))
    .action(run(exportCheckpoint));
}

async function listCheckpoints(context: Context, job: string): Promise<void> {
  const found = [];
  for await (const checkpoint of context.client.jobs.checkpoints(job)) found.push(checkpoint);
  const rows = found.map((checkpoint) => [
    checkpoint.id,
    String(checkpoint.step),
    String(checkpoint.world_size),
    bytes(checkpoint.bytes),
    checkpoint.state_digest,
    checkpoint.pinned ? 'yes' : '',
    age(checkpoint.committed_at),
  ]);
  const head = ['CHECKPOINT', 'STEP', 'RANKS', 'SIZE', 'DIGEST', 'PINNED', 'COMMITTED'];
  context.show(found, () => table(head, rows, 'no checkpoints'));
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

interface SampleOptions {
  maxTokens?: number;
  temperature?: number;
  topK?: number;
  topP?: number;
  seed?: number;
}

async function sample(context: Context, id: string, prompt: string, options: SampleOptions): Promise<void> {
  const { maxTokens: max_tokens, temperature, topK: top_k, topP: top_p, seed } = options;
  const request = { prompt, max_tokens, temperature, top_k, top_p, seed };
  const written = await context.client.checkpoints.sample(id, request);
  context.show(written, () => written.prompt + written.completion);
}

async function exportCheckpoint(context: Context, id: string, request: ExportRequest): Promise<void> {
  const { client, signal } = context;
  let done = await client.checkpoints.export(id, request);
  const isSame = (other: CheckpointExport) => other.format === done.format && other.dtype === done.dtype;
  while (done.state === 'queued' || done.state === 'running') {
    await sleep(EXPORT_POLL_MS, undefined, { signal });
    done = (await client.checkpoints.exports(id)).find(isSame) ?? done;
  }
  if (done.state === 'failed') throw new CliError(done.error?.message ?? 'the export failed', EXIT.failed);
  context.show(done, () => `${done.prefix}\n${fileTable(done.files)}`);
  const { format, dtype } = done;
  context.note(`fetch it with: zerofleet download ${id} --format ${format} --dtype ${dtype}`);
}

function fileTable(files: readonly ExportFile[]): string {
  const rows = files.slice(0, SHOWN_FILES).map((file) => [file.name, bytes(file.bytes)]);
  const shown = table(['FILE', 'SIZE'], rows, 'no files');
  if (files.length <= SHOWN_FILES) return shown;
  const total = files.reduce((sum, file) => sum + file.bytes, 0);
  return `${shown}\n${files.length - SHOWN_FILES} more files, ${bytes(total)} in all`;
}
